// The client against valid and misbehaving servers: every call ends once, with its outcome.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "net/client.h"
#include "tests/net/scripted_server.h"
#include "tests/runner.h"

enum { CALLS = 200 };

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

typedef struct Scene {
    Loop         *loop;
    Client       *client;
    Arena         arena;
    ClientRequest request;
    ClientCall    calls[CALLS];
    uint32_t      ended, ok, wanted, again;  // again: to be sent once more, of each call's end
    uint32_t      status, grpc;
    char          body[64], fault[128];
} Scene;

static void on_done(void *self, ClientCall *c, const ClientReply *r) {
    Scene *s = self;
    s->ended++;
    s->ok += r->fault == NULL;
    s->status = r->status;
    s->grpc = r->grpc;
    (void)snprintf(s->fault, sizeof s->fault, "%s", r->fault != NULL ? r->fault : "");
    (void)snprintf(s->body, sizeof s->body, "%.*s", (int)r->kept, (const char *)r->body);
    if (s->again > 0) {
        s->again--;
        client_submit(s->client, c);
    } else if (s->ended >= s->wanted) {
        loop_stop(s->loop);
    }
}

static void open_scene(Scene *s, ScriptedServer *p, ClientOptions o) {
    *s = (Scene){0};
    assert_int_equal(arena_init(&s->arena, 1 << 20), ERR_OK);
    assert_int_equal(loop_create(&s->loop), ERR_OK);
    scripted_server_open(p, s->loop);
    o.host = "127.0.0.1";
    o.port = p->port;
    assert_int_equal(client_create(&s->client, s->loop, &o), ERR_OK);
    s->request = (ClientRequest){.method = "GET", .path = "/v2"};
    assert_int_equal(client_prepare(s->client, &s->request, &s->arena), ERR_OK);
}

static void close_scene(Scene *s, ScriptedServer *p) {
    client_destroy(s->client);
    scripted_server_close(p);
    loop_destroy(s->loop);
    arena_finish(&s->arena);
}

static void submit(Scene *s, uint32_t i) {
    s->calls[i] = (ClientCall){.request = &s->request, .keep = 63, .done = on_done, .self = s};
    client_submit(s->client, &s->calls[i]);
}

static void ask(Scene *s) {
    s->ended = s->ok = 0;
    s->wanted = 1;
    submit(s, 0);
    assert_int_equal(s->ended, 0);  // never from within client_submit
    assert_int_equal(loop_run(s->loop), ERR_OK);
    assert_int_equal(s->ended, 1);
}

static void ask_all(Scene *s) {
    s->wanted = CALLS;
    for (uint32_t i = 0; i < CALLS; i++) submit(s, i);
    assert_int_equal(loop_run(s->loop), ERR_OK);
}

static void keeps_a_connection(void **state) {
    ScriptedServer p = {.response = HELLO};
    Scene          s;
    (void)state;
    open_scene(&s, &p, (ClientOptions){0});
    for (int i = 0; i < 5; i++) {
        ask(&s);
        assert_int_equal(s.ok, 1);
        assert_int_equal(s.status, 200);
        assert_string_equal(s.body, "hello");
    }
    assert_int_equal(p.accepted, 1);
    assert_int_equal(p.requests, 5);
    assert_int_equal(client_counts(s.client).live, 0);
    close_scene(&s, &p);
}

static void opens_a_new_one_after_each(void **state) {
    static const char *const closing[] = {
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\n\r\nhello",
        HELLO "and more than was asked for",
    };
    (void)state;
    for (size_t i = 0; i < sizeof closing / sizeof *closing; i++) {
        ScriptedServer p = {.response = closing[i], .then_close = i == 2};
        Scene          s;
        open_scene(&s, &p, (ClientOptions){0});
        for (int k = 0; k < 3; k++) {
            ask(&s);
            assert_string_equal(s.fault, "");
            assert_string_equal(s.body, "hello");
        }
        assert_int_equal(p.accepted, 3);
        close_scene(&s, &p);
    }
}

static void counts_bad_servers_as_failures(void **state) {
    static char header[200000];
    static const struct {
        const char  *response;
        size_t       len;
        bool         close, unsolicited;
        ScriptedMode mode;
        const char  *fault;
    } bad[] = {
        {"SSH-2.0-OpenSSH_9.2\r\n\r\n", 0, false, false, SCRIPTED_RESPONDS, "not HTTP"},
        {"SSH-2.0-OpenSSH_9.2\r\n\r\n", 0, false, true, SCRIPTED_RESPONDS, "not HTTP"},
        {"\0\1\2\3\0\0\0\0", 8, true, false, SCRIPTED_RESPONDS, "in the middle"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", 0, true, false, SCRIPTED_RESPONDS,
         "in the middle"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", 0, false, false, SCRIPTED_RESPONDS,
         "timed out waiting for the response"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", 0, false, false,
         SCRIPTED_RESPONDS, "too large"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffff\r\n", 0, true, false,
         SCRIPTED_RESPONDS, "in the middle"},
        {header, sizeof header, false, false, SCRIPTED_RESPONDS, "too large"},
        {"", 1, false, false, SCRIPTED_SILENT, "timed out waiting for the response"},
        {"", 1, false, false, SCRIPTED_CLOSES, "without a response"},
    };
    (void)state;
    memset(header, 'x', sizeof header);
    memcpy(header, "HTTP/1.1 200 OK\r\nX: ", 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ScriptedServer p = {.response = bad[i].response,
                            .len = bad[i].len,
                            .mode = bad[i].mode,
                            .then_close = bad[i].close,
                            .unsolicited = bad[i].unsolicited};
        Scene          s;
        open_scene(&s, &p, (ClientOptions){.timeout_ns = 60 * 1000 * 1000});
        for (int k = 0; k < 3; k++) {
            ask(&s);
            assert_int_equal(s.ok, 0);
            if (strstr(s.fault, bad[i].fault) == NULL) fail_msg("case %zu: %s", i, s.fault);
        }
        close_scene(&s, &p);
    }
}

static void says_when_nobody_listens(void **state) {
    ScriptedServer p = {.response = HELLO};
    Scene          s;
    (void)state;
    open_scene(&s, &p, (ClientOptions){0});
    scripted_server_close(&p);
    ask(&s);
    assert_string_equal(s.fault, "connection refused");
    client_destroy(s.client);
    loop_destroy(s.loop);
    arena_finish(&s.arena);
}

static void sends_again_when_an_idle_connection_was_closed(void **state) {
    ScriptedServer p = {.response = HELLO};
    Scene          s;
    (void)state;
    open_scene(&s, &p, (ClientOptions){0});
    ask(&s);
    p.mode = SCRIPTED_CLOSES;  // the server closes on the next bytes of the old connection
    ask(&s);
    assert_int_equal(s.ok, 0);  // and on the new one too
    assert_int_equal(client_counts(s.client).retries, 1);
    p.mode = SCRIPTED_RESPONDS;
    ask(&s);
    assert_int_equal(s.ok, 1);
    scripted_server_hang_up(&p);
    ask(&s);
    assert_int_equal(s.ok, 1);
    close_scene(&s, &p);
}

static void waits_for_a_connection(void **state) {
    ScriptedServer p = {.response = HELLO};
    Scene          s;
    (void)state;
    open_scene(&s, &p, (ClientOptions){.connections = 4});
    ask_all(&s);
    assert_int_equal(s.ok, CALLS);
    assert_int_equal(p.accepted, 4);
    assert_int_equal(client_counts(s.client).waited, CALLS - 4);
    close_scene(&s, &p);
}

static void ends_all_that_wait_in_vain(void **state) {
    ScriptedServer p = {.mode = SCRIPTED_SILENT};
    Scene          s;
    (void)state;
    open_scene(&s, &p, (ClientOptions){.connections = 4, .timeout_ns = 50 * 1000 * 1000});
    ask_all(&s);
    assert_int_equal(s.ended, CALLS);
    assert_int_equal(s.ok, 0);
    assert_int_equal(client_counts(s.client).live, 0);
    close_scene(&s, &p);
}

// done() submits the next call, thousands of times: the stack does not grow.
static void fails_over_and_over_without_recursion(void **state) {
    ScriptedServer p = {.mode = SCRIPTED_CLOSES};
    Scene          s;
    (void)state;
    open_scene(&s, &p, (ClientOptions){0});
    s.again = 2000;
    submit(&s, 0);
    assert_int_equal(loop_run(s.loop), ERR_OK);
    assert_int_equal(s.ended, 2001);
    assert_int_equal(s.ok, 0);
    close_scene(&s, &p);
}

static void carries_many_streams(void **state) {
    ScriptedServer p = {.mode = SCRIPTED_HTTP2, .response = "proto"};
    Scene          s;
    (void)state;
    open_scene(&s, &p, (ClientOptions){.protocol = CLIENT_HTTP2, .connections = 2});
    ask_all(&s);
    if (s.ok != CALLS) fail_msg("%u ok, %s", s.ok, s.fault);
    assert_int_equal(s.status, 200);
    assert_int_equal(s.grpc, 0);
    assert_string_equal(s.body, "proto");
    assert_true(p.accepted <= 2);
    scripted_server_hang_up(&p);
    ask(&s);
    assert_int_equal(s.ok, 1);
    close_scene(&s, &p);
}

static void counts_bad_servers_of_http2(void **state) {
    static const struct {
        ScriptedMode mode;
        bool         resets;
        const char  *response, *fault;
    } bad[] = {
        {SCRIPTED_HTTP2, true, "", "reset the stream"},
        {SCRIPTED_CLOSES, false, "", "closed the connection"},
        {SCRIPTED_SILENT, false, "", "timed out waiting for the response"},
        {SCRIPTED_RESPONDS, false, "HTTP/1.1 400 Bad Request\r\n\r\n", "not HTTP/2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ScriptedServer p = {
            .mode = bad[i].mode, .resets = bad[i].resets, .response = bad[i].response};
        Scene s;
        open_scene(&s, &p,
                   (ClientOptions){.protocol = CLIENT_HTTP2, .timeout_ns = 60 * 1000 * 1000});
        for (int k = 0; k < 3; k++) {
            ask(&s);
            assert_int_equal(s.ok, 0);
            if (strstr(s.fault, bad[i].fault) == NULL) fail_msg("case %zu: %s", i, s.fault);
        }
        close_scene(&s, &p);
    }
}

static void reads_urls(void **state) {
    static const struct {
        const char *text, *host, *port, *path;
    } good[] = {
        {"http://localhost:8000", "localhost", "8000", ""},
        {"http://127.0.0.1", "127.0.0.1", "8000", ""},
        {"grpc://[::1]:77", "::1", "77", ""},
        {"grpc://h", "h", "8001", ""},
        {"h:9/a/b/", "h", "9", "/a/b"},
        {"http://[fe80::1]/", "fe80::1", "8000", ""},
    };
    static const char *const bad[] = {"",           "http://",    "https://h",   "http://h:",
                                      "http://h:x", "http://:80", "http://[::1", "http://a b",
                                      "http://h?q", "http://u@h", "ftp://h",     "http://h:999999"};
    Arena                    a;
    ClientUrl                u;
    (void)state;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(client_url(good[i].text, &a, &u), ERR_OK);
        assert_string_equal(u.host, good[i].host);
        assert_string_equal(u.port, good[i].port);
        assert_string_equal(u.path, good[i].path);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(client_url(bad[i], &a, &u), ERR_ARG);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_a_connection),
        cmocka_unit_test(opens_a_new_one_after_each),
        cmocka_unit_test(counts_bad_servers_as_failures),
        cmocka_unit_test(says_when_nobody_listens),
        cmocka_unit_test(sends_again_when_an_idle_connection_was_closed),
        cmocka_unit_test(waits_for_a_connection),
        cmocka_unit_test(ends_all_that_wait_in_vain),
        cmocka_unit_test(fails_over_and_over_without_recursion),
        cmocka_unit_test(carries_many_streams),
        cmocka_unit_test(counts_bad_servers_of_http2),
        cmocka_unit_test(reads_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
