// Calls against a server that answers well, late, wrongly or not at all: each ends once, with the
// outcome that lets its caller decide.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/file.h"
#include "kube/kube_api.h"
#include "tests/kube/api_stand.h"
#include "tests/runner.h"

enum { CALLS = 64 };

static const TimeNs MS = 1000000;

typedef struct Scene Scene;

struct Scene {
    Loop          *loop;
    KubeApi       *api;
    ApiStand       stand;
    KubeConfig     config;
    KubeApiOptions options;
    KubeCall       calls[CALLS];
    LoopTimer      timer;
    uint32_t       ended, wanted, lines;
    KubeReply      reply;
    char           body[256], fault[256], last_line[64], head[1024], sent[256];
    ApiConn       *held[CALLS];  // requests without an answer yet
    uint32_t       n_held, most_held;
    void (*on_end)(Scene *s, KubeCall *c);
};

static void on_done(void *self, KubeCall *c, const KubeReply *r) {
    Scene *s = self;
    s->ended++;
    s->reply = *r;
    assert_int_equal(strlen(r->body), r->len < 200 ? r->len : strlen(r->body));
    (void)snprintf(s->body, sizeof s->body, "%s", r->body);
    (void)snprintf(s->fault, sizeof s->fault, "%s", r->fault != NULL ? r->fault : "");
    if (s->on_end != NULL) s->on_end(s, c);
    if (s->ended >= s->wanted) loop_stop(s->loop);
}

static void open_scene(Scene *s, void (*request)(void *, ApiConn *, const ApiRequest *)) {
    assert_int_equal(loop_create(&s->loop), ERR_OK);
    api_stand_open(&s->stand, s->loop, request, s);
    s->config.server = s->stand.url;
    assert_int_equal(kube_api_create(&s->api, s->loop, &s->config, &s->options), ERR_OK);
}

static void close_scene(Scene *s) {
    kube_api_destroy(s->api);
    loop_disarm(s->loop, &s->timer);
    api_stand_close(&s->stand);
    loop_destroy(s->loop);
}

static KubeCall *submit(Scene *s, uint32_t i, const char *method, const char *path,
                        const char *body) {
    s->calls[i] = (KubeCall){.method = method,
                             .path = path,
                             .body = body,
                             .len = body != NULL ? strlen(body) : 0,
                             .done = on_done,
                             .self = s};
    kube_api_submit(s->api, &s->calls[i]);
    return &s->calls[i];
}

static void run(Scene *s, uint32_t wanted) {
    s->wanted = wanted;
    s->ended = 0;
    assert_int_equal(loop_run(s->loop), ERR_OK);
    assert_int_equal(s->ended, wanted);
}

static void ask(Scene *s, const char *method, const char *path, const char *body) {
    (void)submit(s, 0, method, path, body);
    assert_int_equal(s->ended == 0 || s->wanted > 0, 1);
    run(s, 1);
}

static void echo(void *self, ApiConn *c, const ApiRequest *r) {
    Scene *s = self;
    (void)snprintf(s->head, sizeof s->head, "%s", r->head);
    (void)snprintf(s->sent, sizeof s->sent, "%s %s %s", r->method, r->path, r->body);
    api_conn_answer(c, 201, "", "{\"kind\":\"Status\"}");
}

static void sends_and_keeps_the_connection(void **state) {
    Scene s = {.config.token = "secret"};
    (void)state;
    open_scene(&s, echo);
    ask(&s, "POST", "/api/v1/pods/p/binding?a=b", "{\"x\":1}");
    assert_string_equal(s.sent, "POST /api/v1/pods/p/binding?a=b {\"x\":1}");
    assert_int_equal(s.reply.outcome, KUBE_DONE);
    assert_int_equal(s.reply.status, 201);
    assert_string_equal(s.body, "{\"kind\":\"Status\"}");
    assert_non_null(strstr(s.head, "Authorization: Bearer secret\r\n"));
    assert_non_null(strstr(s.head, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(s.head, "User-Agent: cotenant/"));
    assert_non_null(strstr(s.head, "Accept-Encoding: gzip\r\n"));
    assert_null(strstr(s.head, "Expect:"));
    s.calls[0].type = "application/strategic-merge-patch+json";
    s.calls[0].method = "PATCH";
    kube_api_submit(s.api, &s.calls[0]);
    run(&s, 1);
    assert_non_null(strstr(s.head, "Content-Type: application/strategic-merge-patch+json\r\n"));
    ask(&s, "DELETE", "/x", NULL);
    assert_string_equal(s.sent, "DELETE /x ");
    ask(&s, "PUT", "/x", "{}");
    ask(&s, "GET", "/x", NULL);
    assert_string_equal(s.sent, "GET /x ");
    assert_int_equal(s.stand.accepted, 1);
    assert_int_equal(s.stand.requests, 5);
    assert_int_equal(kube_api_live(s.api), 0);
    close_scene(&s);
}

static void reads_gzip(void *self, ApiConn *c, const ApiRequest *r) {
    static char  text[200000], head[128];
    static Bytef packed[4096];
    z_stream     z = {0};
    (void)self, (void)r;
    memset(text, 'a', sizeof text);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)text;
    z.avail_in = sizeof text;
    z.next_out = packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    (void)snprintf(head, sizeof head,
                   "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %lu\r\n\r\n",
                   z.total_out);
    api_conn_say(c, head);
    api_conn_send(c, (const char *)packed, z.total_out);
    (void)deflateEnd(&z);
}

// The limit is for what comes out of the compression.
static void bodies_are_bounded(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s, reads_gzip);
    ask(&s, "GET", "/", NULL);
    assert_int_equal(s.reply.outcome, KUBE_DONE);
    assert_int_equal(s.reply.len, 200000);
    close_scene(&s);
    s = (Scene){.options.body_bytes = 199999};
    open_scene(&s, reads_gzip);
    ask(&s, "GET", "/", NULL);
    assert_int_equal(s.reply.outcome, KUBE_UNKNOWN);
    assert_true(s.reply.too_large);
    assert_non_null(strstr(s.fault, "too large"));
    close_scene(&s);
}

static void says_when_to_retry(void *self, ApiConn *c, const ApiRequest *r) {
    (void)self;
    if (strcmp(r->path, "/long") == 0)
        api_conn_answer(c, 503, "Retry-After: 999999\r\n", "busy");
    else if (strcmp(r->path, "/429") == 0)
        api_conn_answer(c, 429, "Retry-After: 7\r\n", "{}");
    else
        api_conn_answer(c, 429, "", "{}");
}

static void reads_retry_after(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s, says_when_to_retry);
    ask(&s, "POST", "/429", "{}");
    assert_int_equal(s.reply.status, 429);
    assert_int_equal(s.reply.retry_after, 7000 * MS);
    ask(&s, "POST", "/none", "{}");
    assert_int_equal(s.reply.retry_after, 0);
    ask(&s, "POST", "/long", "{}");
    assert_int_equal(s.reply.retry_after, INT64_C(3600) * 1000 * MS);
    close_scene(&s);
}

// path: "/close", "/reset": after the request was read; "/half": within the body.
static void breaks(void *self, ApiConn *c, const ApiRequest *r) {
    (void)self;
    if (strcmp(r->path, "/ok") == 0)
        api_conn_answer(c, 200, "", "{}");
    else if (strcmp(r->path, "/half") == 0)
        api_conn_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"half\":");
    else if (strcmp(r->path, "/nonsense") == 0)
        api_conn_say(c, "SSH-2.0-OpenSSH\r\n\r\n");
    if (strcmp(r->path, "/reset") == 0)
        api_conn_reset(c);
    else if (strcmp(r->path, "/ok") != 0)
        api_conn_close(c);
}

static void a_request_that_was_read_may_have_been_done(void **state) {
    static const char *const paths[] = {"/close", "/reset", "/half", "/nonsense"};
    (void)state;
    for (uint32_t reused = 0; reused < 2; reused++)
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
            Scene s = {0};
            open_scene(&s, breaks);
            if (reused) ask(&s, "GET", "/ok", NULL);
            ask(&s, "POST", paths[i], "{}");
            assert_int_equal(s.reply.outcome, KUBE_UNKNOWN);
            assert_non_null(strstr(s.fault, paths[i]));
            assert_int_equal(s.stand.requests, 1 + reused);  // never repeated
            close_scene(&s);
        }
}

static void a_request_without_a_connection_was_not_sent(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s, breaks);
    loop_forget(s.loop, &s.stand.listener);
    assert_int_equal(close(s.stand.listener.fd), 0);
    ask(&s, "POST", "/close", "{}");
    assert_int_equal(s.reply.outcome, KUBE_NOT_SENT);
    assert_int_equal(s.reply.status, 0);
    assert_true(s.fault[0] != '\0');
    s.stand.listener.fd = dup(0);
    close_scene(&s);
}

// The connection was there: whether the request went out before the reset is not known.
static void a_reset_before_reading_is_never_taken_for_done(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s, breaks);
    s.stand.rejects = true;
    ask(&s, "POST", "/close", "{}");
    assert_int_not_equal(s.reply.outcome, KUBE_DONE);
    assert_int_equal(s.stand.requests, 0);
    close_scene(&s);
}

static void holds(void *self, ApiConn *c, const ApiRequest *r) {
    Scene *s = self;
    (void)r;
    assert_true(s->n_held < CALLS);
    s->held[s->n_held++] = c;
    if (s->n_held > s->most_held) s->most_held = s->n_held;
}

static void a_slow_server_times_out(void **state) {
    Scene s = {.options.timeout = 50 * MS, .options.connections = 1};
    (void)state;
    open_scene(&s, holds);
    (void)submit(&s, 0, "POST", "/slow", "{}");
    run(&s, 1);
    assert_int_equal(s.reply.outcome, KUBE_UNKNOWN);
    assert_true(s.reply.took >= 50 * MS);
    assert_non_null(strstr(s.fault, "timed out: no response"));
    // One that waited for the only connection was never sent.
    KubeCall *slow = submit(&s, 0, "POST", "/slow", "{}");
    kube_api_cancel(s.api, slow);
    slow->timeout = INT64_C(3600) * 1000 * MS;
    kube_api_submit(s.api, slow);
    (void)submit(&s, 1, "POST", "/waits", "{}");
    run(&s, 1);
    assert_int_equal(s.reply.outcome, KUBE_NOT_SENT);
    assert_non_null(strstr(s.fault, "/waits: timed out"));
    close_scene(&s);
}

static void answer_all(void *self) {
    Scene *s = self;
    for (uint32_t i = 0; i < s->n_held; i++) api_conn_answer(s->held[i], 200, "", "{}");
    s->n_held = 0;
    if (s->ended < s->wanted)
        assert_int_equal(loop_arm(s->loop, &s->timer, clock_monotonic_ns()), ERR_OK);
}

static void at_most_so_many_at_once(void **state) {
    Scene s = {.options.connections = 3};
    (void)state;
    open_scene(&s, holds);
    for (uint32_t i = 0; i < CALLS - 1; i++) (void)submit(&s, i, "POST", "/x", "{}");
    s.timer = (LoopTimer){.fire = answer_all, .self = &s};
    assert_int_equal(loop_arm(s.loop, &s.timer, 0), ERR_OK);
    run(&s, CALLS - 1);
    assert_true(s.most_held <= 3);
    assert_true(s.stand.accepted <= 3);
    close_scene(&s);
}

static bool on_line(void *self, const char *text, size_t len) {
    Scene *s = self;
    s->lines++;
    assert_int_equal(text[len], 0);
    (void)snprintf(s->last_line, sizeof s->last_line, "%s", text);
    if (strcmp(text, "cancel") == 0) {
        kube_api_cancel(s->api, &s->calls[0]);
        loop_stop(s->loop);
    } else if (strcmp(text, "destroy") == 0) {
        kube_api_destroy(s->api);
        s->api = NULL;
        loop_stop(s->loop);
    }
    return strcmp(text, "stop") != 0;
}

static void watch(Scene *s, const char *path) {
    s->lines = 0;
    s->calls[0] =
        (KubeCall){.method = "GET", .path = path, .line = on_line, .done = on_done, .self = s};
    kube_api_submit(s->api, &s->calls[0]);
}

static void a_watch_and_urgent_calls_pass_the_queue(void **state) {
    Scene s = {.options.connections = 1};
    (void)state;
    open_scene(&s, holds);
    for (uint32_t i = 1; i < 4; i++) (void)submit(&s, i, "POST", "/x", "{}");
    watch(&s, "/watch");
    s.calls[4] = (KubeCall){
        .method = "PUT", .path = "/lease", .body = "", .urgent = true, .done = on_done, .self = &s};
    kube_api_submit(s.api, &s.calls[4]);
    s.wanted = 99;
    while (s.n_held < 3) {
        s.timer = (LoopTimer){.fire = (void (*)(void *))loop_stop, .self = s.loop};
        assert_int_equal(loop_arm(s.loop, &s.timer, clock_monotonic_ns() + MS), ERR_OK);
        assert_int_equal(loop_run(s.loop), ERR_OK);
    }
    assert_int_equal(s.n_held, 3);
    assert_int_equal(kube_api_live(s.api), 5);
    close_scene(&s);  // open calls end without done()
    assert_int_equal(s.ended, 0);
}

static void streams(void *self, ApiConn *c, const ApiRequest *r) {
    static char big[70000];
    (void)self;
    if (strcmp(r->path, "/gone") == 0) {
        api_conn_answer(c, 410, "", "{\"code\":410}\n");
        return;
    }
    api_conn_begin_lines(c);
    api_conn_line(c, "one");
    api_conn_chunk(c, "tw");
    api_conn_chunk(c, "o\nthr");
    api_conn_chunk(c, "ee\n\n");
    memset(big, 'x', sizeof big - 1);
    if (strcmp(r->path, "/huge") == 0) api_conn_chunk(c, big);
    if (strcmp(r->path, "/half") == 0) api_conn_chunk(c, "half");
    if (strcmp(r->path, "/cut") == 0) {
        api_conn_chunk(c, "half");
        api_conn_reset(c);
        return;
    }
    if (*r->path != '/' || strchr("scd", r->path[1]) != NULL) {
        api_conn_line(c, r->path + 1);
        api_conn_line(c, "never");
    }
    api_conn_end_lines(c);
}

static void lines_come_one_by_one(void **state) {
    Scene s = {.options.line_bytes = 65536};
    (void)state;
    open_scene(&s, streams);
    watch(&s, "/plain");
    run(&s, 1);
    assert_int_equal(s.lines, 3);
    assert_string_equal(s.last_line, "three");
    assert_int_equal(s.reply.outcome, KUBE_DONE);
    assert_int_equal(s.reply.len, 0);
    watch(&s, "/half");  // without its end it is no line
    run(&s, 1);
    assert_int_equal(s.lines, 3);
    assert_int_equal(s.reply.outcome, KUBE_DONE);
    watch(&s, "/cut");
    run(&s, 1);
    assert_true(s.lines <= 3);  // a reset discards what was on its way
    assert_int_equal(s.reply.outcome, KUBE_UNKNOWN);
    watch(&s, "/huge");
    run(&s, 1);
    assert_int_equal(s.lines, 3);
    assert_true(s.reply.too_large);
    watch(&s, "/stop");
    run(&s, 1);
    assert_int_equal(s.lines, 4);
    assert_int_equal(s.reply.outcome, KUBE_DONE);
    watch(&s, "/gone");
    run(&s, 1);
    assert_int_equal(s.lines, 0);
    assert_int_equal(s.reply.status, 410);
    assert_string_equal(s.body, "{\"code\":410}\n");
    close_scene(&s);
}

static void cancel_and_destroy_within_a_line(void **state) {
    static const char *const paths[] = {"/cancel", "/destroy"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        Scene s = {0};
        open_scene(&s, streams);
        watch(&s, paths[i]);
        if (i == 1) (void)submit(&s, 1, "GET", "/other", NULL);
        s.wanted = 9;
        assert_int_equal(loop_run(s.loop), ERR_OK);
        assert_string_equal(s.last_line, paths[i] + 1);
        assert_int_equal(s.lines, 4);
        assert_true(s.ended == 0 || i == 1);
        if (s.api != NULL) assert_int_equal(kube_api_live(s.api), 0);
        close_scene(&s);
    }
}

static void end_destroys(Scene *s, KubeCall *c) {
    (void)c;
    kube_api_destroy(s->api);
    s->api = NULL;
    s->wanted = s->ended;
}

static void end_cancels_others(Scene *s, KubeCall *c) {
    (void)c;
    for (uint32_t i = 0; i < 8; i++) kube_api_cancel(s->api, &s->calls[i]);
    s->wanted = s->ended;
}

static void cancel_and_destroy_within_done(void **state) {
    void (*const ends[])(Scene *, KubeCall *) = {end_destroys, end_cancels_others};
    (void)state;
    for (int i = 0; i < 2; i++) {
        Scene s = {.on_end = ends[i], .options.connections = 2};
        open_scene(&s, echo);
        for (uint32_t k = 0; k < 8; k++) (void)submit(&s, k, "POST", "/x", "{}");
        s.wanted = 8;
        assert_int_equal(loop_run(s.loop), ERR_OK);
        assert_int_equal(s.ended, 1);
        close_scene(&s);
    }
}

static void end_repeats(Scene *s, KubeCall *c) {
    if (s->ended < 20) kube_api_submit(s->api, c);
}

static void done_may_submit_again(void **state) {
    Scene s = {.on_end = end_repeats};
    (void)state;
    open_scene(&s, echo);
    (void)submit(&s, 0, "POST", "/x", "{}");
    run(&s, 20);
    assert_int_equal(s.stand.requests, 20);
    assert_int_equal(s.stand.accepted, 1);
    close_scene(&s);
}

// Every way in which a call can end is met at every point where it can be cancelled.
static void a_cancelled_call_never_ends(void **state) {
    Scene s = {0};
    (void)state;
    open_scene(&s, holds);
    for (int ms = 0; ms < 5; ms++) {
        KubeCall *c = submit(&s, 0, "POST", "/x", "{}");
        s.timer = (LoopTimer){.fire = (void (*)(void *))loop_stop, .self = s.loop};
        assert_int_equal(loop_arm(s.loop, &s.timer, clock_monotonic_ns() + ms * MS), ERR_OK);
        assert_int_equal(loop_run(s.loop), ERR_OK);
        kube_api_cancel(s.api, c);
        kube_api_cancel(s.api, c);
        assert_int_equal(kube_api_live(s.api), 0);
    }
    assert_int_equal(s.ended, 0);
    close_scene(&s);
}

static void wants_the_new_token(void *self, ApiConn *c, const ApiRequest *r) {
    Scene *s = self;
    (void)snprintf(s->head, sizeof s->head, "%s", r->head);
    bool good = strstr(r->head, "Authorization: Bearer new\r\n") != NULL;
    api_conn_answer(c, good ? 201 : 401, "", good ? "{}" : "{\"code\":401}");
}

static void a_401_reads_the_token_again_once(void **state) {
    char  path[] = "kube_api_test.XXXXXX";
    int   fd = mkstemp(path);
    Scene s = {.config.token_file = path};
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(file_replace(path, "old\n", 4), ERR_OK);
    open_scene(&s, wants_the_new_token);
    ask(&s, "POST", "/x", "{}");
    assert_int_equal(s.reply.status, 401);
    assert_int_equal(s.stand.requests, 2);
    assert_int_equal(file_replace(path, "  new\n", 6), ERR_OK);
    ask(&s, "POST", "/x", "{}");
    assert_int_equal(s.reply.status, 201);
    assert_int_equal(s.stand.requests, 4);
    ask(&s, "POST", "/x", "{}");
    assert_int_equal(s.stand.requests, 5);
    assert_int_equal(file_replace(path, "two words", 9), ERR_OK);  // kept: the old one
    ask(&s, "POST", "/x", "{}");
    assert_int_equal(s.reply.status, 201);
    close_scene(&s);
    KubeApi *a = NULL;
    Loop    *l = NULL;
    assert_int_equal(loop_create(&l), ERR_OK);
    assert_int_equal(kube_api_create(&a, l, &s.config, NULL), ERR_CONFIG);
    assert_non_null(strstr(err_why(), "token"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(kube_api_create(&a, l, &s.config, NULL), ERR_IO);
    loop_destroy(l);
}

static void sum(void *self, const KubeApiCount *c) {
    uint64_t *n = self;
    if (strcmp(c->verb, "POST") == 0 && c->code == 201) n[0] += c->n;
    if (strcmp(c->verb, "GET") == 0 && c->code == 0) n[1] += c->n;
    n[2] += c->n;
}

static void calls_are_counted(void **state) {
    uint64_t n[3] = {0};
    Scene    s = {0};
    (void)state;
    open_scene(&s, echo);
    for (int i = 0; i < 3; i++) ask(&s, "POST", "/x", "{}");
    s.stand.request = breaks;
    ask(&s, "GET", "/half", NULL);
    kube_api_counts(s.api, sum, n);
    assert_int_equal(n[0], 3);
    assert_int_equal(n[1], 1);
    assert_int_equal(n[2], 4);
    assert_int_equal(hist_count(kube_api_times(s.api, "POST")), 3);
    assert_null(kube_api_times(s.api, "HEAD"));
    close_scene(&s);
}

static void too_long_a_path_was_not_sent(void **state) {
    static char path[20000];
    Scene       s = {0};
    (void)state;
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    open_scene(&s, echo);
    ask(&s, "GET", path, NULL);
    assert_int_equal(s.reply.outcome, KUBE_NOT_SENT);
    assert_int_equal(s.stand.requests, 0);
    close_scene(&s);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_and_keeps_the_connection),
        cmocka_unit_test(bodies_are_bounded),
        cmocka_unit_test(reads_retry_after),
        cmocka_unit_test(a_request_that_was_read_may_have_been_done),
        cmocka_unit_test(a_request_without_a_connection_was_not_sent),
        cmocka_unit_test(a_reset_before_reading_is_never_taken_for_done),
        cmocka_unit_test(a_slow_server_times_out),
        cmocka_unit_test(at_most_so_many_at_once),
        cmocka_unit_test(a_watch_and_urgent_calls_pass_the_queue),
        cmocka_unit_test(lines_come_one_by_one),
        cmocka_unit_test(cancel_and_destroy_within_a_line),
        cmocka_unit_test(cancel_and_destroy_within_done),
        cmocka_unit_test(done_may_submit_again),
        cmocka_unit_test(a_cancelled_call_never_ends),
        cmocka_unit_test(a_401_reads_the_token_again_once),
        cmocka_unit_test(calls_are_counted),
        cmocka_unit_test(too_long_a_path_was_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
