// A watch against a server that pages, expires, cuts, and says nonsense: what the owner holds is in
// the end what the server holds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/kube_watch.h"
#include "tests/kube/api_stand.h"
#include "tests/runner.h"

enum { HELD = 64 };

static const TimeNs MS = 1000000;

#define ITEM(name) "{\"metadata\":{\"name\":\"" name "\"}}"
#define EVENT(type, name, version)                                                                 \
    "{\"type\":\"" type "\",\"object\":{\"metadata\":{\"name\":\"" name                            \
    "\",\"resourceVersion\":\"" version "\"}}}"
#define GONE_EVENT                                                                                 \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}"
#define PAGE(version, next, items)                                                                 \
    "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" next                      \
    "\"},\"items\":[" items "]}"

typedef enum StepKind {
    STEP_ANSWER,  // status and text
    STEP_LINES,   // text is lines, a clean end
    STEP_CUT,     // the same, then a reset within a line
    STEP_HOLD,    // the same, then silence
} StepKind;

typedef struct Step {  // what a request must ask for, and its answer
    const char *want;  // in the path
    StepKind    kind;
    int         status;
    const char *text;
} Step;

typedef struct Scene {
    Loop           *loop;
    KubeApi        *api;
    ApiStand        stand;
    KubeConfig      config;
    KubeWatch      *watch;
    const Step     *steps;
    uint32_t        n_steps, at;
    char            held[HELD][16], fresh[HELD][16];  // names; fresh: put since begin()
    uint32_t        n_held, n_fresh, begins, ends, missing, puts;
    bool            listing;
    const char     *stop_at;  // a name whose put stops the watch
    KubeWatchCounts counts;
    char            fault[256];
} Scene;

static uint32_t find(char names[HELD][16], uint32_t n, const char *name) {
    uint32_t i = 0;
    while (i < n && strcmp(names[i], name) != 0) i++;
    return i;
}

static const char *name_of(const json_t *object) {
    return json_string_value(json_object_get(json_object_get(object, "metadata"), "name"));
}

static void add(char names[HELD][16], uint32_t *n, const char *name) {
    if (find(names, *n, name) == *n) (void)snprintf(names[(*n)++], 16, "%s", name);
}

static void on_begin(void *self) {
    Scene *s = self;
    s->begins++;
    s->listing = true;
    s->n_fresh = 0;
}

static void finish(Scene *s) {
    if (s->watch != NULL) {
        s->counts = kube_watch_counts(s->watch);
        (void)snprintf(s->fault, sizeof s->fault, "%s", kube_watch_fault(s->watch));
    }
    kube_watch_stop(s->watch);
    s->watch = NULL;
    loop_stop(s->loop);
}

static void on_put(void *self, const json_t *object) {
    Scene *s = self;
    s->puts++;
    if (s->listing)
        add(s->fresh, &s->n_fresh, name_of(object));
    else
        add(s->held, &s->n_held, name_of(object));
    if (s->stop_at != NULL && strcmp(s->stop_at, name_of(object)) == 0) finish(s);
}

static void on_gone(void *self, const json_t *object) {
    Scene   *s = self;
    uint32_t i = find(s->held, s->n_held, name_of(object));
    assert_true(i < s->n_held);
    memmove(s->held[i], s->held[--s->n_held], 16);
}

static void on_end(void *self) {
    Scene *s = self;
    assert_true(s->listing);
    s->listing = false;
    s->ends++;
    memcpy(s->held, s->fresh, sizeof s->held);
    s->n_held = s->n_fresh;
}

static void on_missing(void *self) {
    Scene *s = self;
    s->missing++;
}

static void say_lines(ApiConn *c, const Step *t) {
    api_conn_begin_lines(c);
    if (*t->text != '\0') api_conn_line(c, t->text);
    if (t->kind == STEP_CUT) api_conn_chunk(c, "{\"type\":\"ADDED\",\"obj");
    if (t->kind == STEP_CUT) api_conn_close(c);
    if (t->kind == STEP_LINES) api_conn_end_lines(c);
}

// A request beyond the script ends the test.
static void play(void *self, ApiConn *c, const ApiRequest *r) {
    Scene *s = self;
    if (s->at == s->n_steps) {
        finish(s);
        return;
    }
    const Step *t = &s->steps[s->at++];
    if (strstr(r->path, t->want) == NULL) fail_msg("step %u: %s lacks %s", s->at, r->path, t->want);
    assert_true(strncmp(r->path, "/api/v1/pods?", 13) == 0);
    assert_non_null(strstr(r->path, "&fieldSelector=a%3Db"));
    if (t->kind == STEP_ANSWER)
        api_conn_answer(c, t->status, "", t->text);
    else
        say_lines(c, t);
}

static void open_scene(Scene *s, const Step *steps, uint32_t n, KubeApiOptions o) {
    static const KubeWatchPace pace = {
        .first = 1000000, .most = 4000000, .missing = 1000000, .silence = 50000000, .watch_s = 1};
    KubeWatchSink sink = {on_begin, on_put, on_gone, on_end, on_missing, s};
    s->steps = steps;
    s->n_steps = n;
    assert_int_equal(loop_create(&s->loop), ERR_OK);
    api_stand_open(&s->stand, s->loop, play, s);
    s->config.server = s->stand.url;
    assert_int_equal(kube_api_create(&s->api, s->loop, &s->config, &o), ERR_OK);
    assert_int_equal(kube_watch_start(&s->watch, s->api, s->loop, "/api/v1/pods",
                                      "fieldSelector=a%3Db", &sink, (Rng){1}),
                     ERR_OK);
    kube_watch_pace(s->watch, &pace);
}

static void run_scene(Scene *s) {
    assert_int_equal(loop_run(s->loop), ERR_OK);
    assert_int_equal(s->at, s->n_steps);
    assert_int_equal(kube_api_live(s->api), 0);
    kube_api_destroy(s->api);
    api_stand_close(&s->stand);
    loop_destroy(s->loop);
}

#define PLAY(s, steps, ...)                                                                        \
    do {                                                                                           \
        open_scene(&(s), steps, sizeof(steps) / sizeof *(steps), (KubeApiOptions){__VA_ARGS__});   \
        run_scene(&(s));                                                                           \
    } while (0)

static void holds_exactly(const Scene *s, uint32_t n, const char *const *names) {
    assert_int_equal(s->n_held, n);
    for (uint32_t i = 0; i < n; i++)
        assert_true(find((char(*)[16])(uintptr_t)s->held, s->n_held, names[i]) < n);
}

#define HOLDS(s, ...)                                                                              \
    do {                                                                                           \
        const char *const names_[] = {__VA_ARGS__};                                                \
        holds_exactly(&(s), sizeof names_ / sizeof *names_, names_);                               \
    } while (0)

static void lists_in_pages_and_follows(void **state) {
    static const Step steps[] = {
        {"limit=500&", STEP_ANSWER, 200, PAGE("v 1/+", "t&=", ITEM("a") "," ITEM("b"))},
        {"&continue=t%26%3D", STEP_ANSWER, 200, PAGE("v 1/+", "t2", ITEM("c"))},
        {"&continue=t2", STEP_ANSWER, 200, PAGE("v 1/+", "", "")},
        {"watch=1&allowWatchBookmarks=true&timeoutSeconds=", STEP_LINES, 0,
         EVENT("ADDED", "d", "w") "\n" EVENT("MODIFIED", "a", "x") "\n" EVENT("DELETED", "b", "y")},
        {"resourceVersion=y", STEP_LINES, 0, EVENT("BOOKMARK", "", "z")},
        {"resourceVersion=z", STEP_LINES, 0, EVENT("ADDED", "e", "zz")},
    };
    Scene s = {0};
    (void)state;
    PLAY(s, steps, 0);
    HOLDS(s, "a", "c", "d", "e");
    assert_int_equal(s.begins, 1);
    assert_int_equal(s.counts.lists, 1);
    assert_int_equal(s.counts.relists, 0);
    assert_int_equal(s.counts.events, 4);
    assert_int_equal(s.counts.bookmarks, 1);
    assert_int_equal(s.counts.errors, 0);
    assert_true(s.counts.synced);
    assert_true(s.counts.heard > 0);
}

static void opaque_versions_are_encoded(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 200, PAGE("v 1/+", "", ITEM("a"))},
        {"resourceVersion=v%201%2F%2B", STEP_LINES, 0, EVENT("ADDED", "b", "2")},
    };
    Scene s = {0};
    (void)state;
    PLAY(s, steps, 0);
    HOLDS(s, "a", "b");
}

// Deletions that were missed are noticed, in both forms of 410.
static void lists_anew_after_410(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 200, PAGE("1", "", ITEM("a") "," ITEM("b"))},
        {"resourceVersion=1", STEP_LINES, 0, EVENT("ADDED", "c", "2") "\n" GONE_EVENT},
        {"limit", STEP_ANSWER, 200, PAGE("5", "", ITEM("a") "," ITEM("d"))},
        {"resourceVersion=5", STEP_ANSWER, 410, "{\"code\":410}"},
        {"limit", STEP_ANSWER, 200, PAGE("9", "", ITEM("e"))},
        {"resourceVersion=9", STEP_HOLD, 0, GONE_EVENT},
        {"limit", STEP_ANSWER, 200, PAGE("10", "", ITEM("f"))},
    };
    Scene s = {0};
    (void)state;
    PLAY(s, steps, 0);
    HOLDS(s, "f");
    assert_int_equal(s.counts.lists, 4);
    assert_int_equal(s.counts.relists, 3);
    assert_int_equal(s.counts.errors, 3);
}

static void an_expired_page_starts_over(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 200, PAGE("1", "t", ITEM("a"))},
        {"continue=t", STEP_ANSWER, 410, "{\"code\":410}"},
        {"limit=500&fieldSelector=a%3Db", STEP_ANSWER, 200, PAGE("2", "u", ITEM("b"))},
        {"continue=u", STEP_ANSWER, 503, "{}"},  // not the list's fault: the page is asked again
        {"continue=u", STEP_ANSWER, 200, PAGE("2", "", ITEM("c"))},
    };
    Scene s = {0};
    (void)state;
    PLAY(s, steps, 0);
    HOLDS(s, "b", "c");
    assert_int_equal(s.begins, 2);
    assert_int_equal(s.ends, 1);
}

static void a_cut_resumes_without_the_partial_line(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 200, PAGE("1", "", "")},
        {"resourceVersion=1", STEP_CUT, 0, EVENT("ADDED", "a", "2")},
        {"resourceVersion=2", STEP_CUT, 0, ""},
        {"resourceVersion=2", STEP_ANSWER, 500, "{}"},
        {"resourceVersion=2", STEP_ANSWER, 429, "{}"},
        {"resourceVersion=2", STEP_LINES, 0, EVENT("ADDED", "b", "3")},
    };
    Scene s = {0};
    (void)state;
    PLAY(s, steps, 0);
    HOLDS(s, "a", "b");
    assert_int_equal(s.counts.lists, 1);
    assert_int_equal(s.counts.errors, 4);
}

// The same nonsense again would stop the watch for ever: a list is the way out.
static void nonsense_twice_lists_anew(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 200, PAGE("1", "", ITEM("a"))},
        {"resourceVersion=1", STEP_LINES, 0, "{\"type\":"},
        {"resourceVersion=1", STEP_HOLD, 0, "{\"type\":\"ADDED\",\"object\":{}}"},
        {"limit", STEP_ANSWER, 200, "not JSON"},
        {"limit", STEP_ANSWER, 200, PAGE("2", "", ITEM("b"))},
        {"resourceVersion=2", STEP_LINES, 0,
         "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd\"}}"},
        {"resourceVersion=2", STEP_LINES, 0, EVENT("ADDED", "c", "3")},
    };
    Scene s = {0};
    (void)state;
    PLAY(s, steps, 0);
    HOLDS(s, "b", "c");
    assert_int_equal(s.counts.lists, 2);
    assert_non_null(strstr(s.fault, "etcd"));
}

static void a_missing_collection_is_asked_for_again(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 404, "{}"},
        {"limit", STEP_ANSWER, 404, "{}"},
        {"limit", STEP_ANSWER, 200, PAGE("1", "", ITEM("a"))},
        {"resourceVersion=1", STEP_ANSWER, 404, "{}"},
        {"limit", STEP_ANSWER, 200, PAGE("2", "", ITEM("b"))},
    };
    Scene s = {0};
    (void)state;
    PLAY(s, steps, 0);
    HOLDS(s, "b");
    assert_int_equal(s.missing, 3);
}

// timeoutSeconds is 1 or 2, and 50 ms without a line beyond it are too many.
static void a_silent_watch_is_opened_again(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 200, PAGE("1", "", ITEM("a"))},
        {"resourceVersion=1", STEP_HOLD, 0, EVENT("ADDED", "b", "2")},
        {"resourceVersion=2", STEP_LINES, 0, EVENT("ADDED", "c", "3")},
    };
    Scene s = {0};
    (void)state;
    TimeNs began = clock_monotonic_ns();
    PLAY(s, steps, 0);
    assert_true(clock_monotonic_ns() - began >= 1050 * MS);
    HOLDS(s, "a", "b", "c");
    assert_non_null(strstr(s.fault, "silent"));
}

static void large_pages_and_lines_are_avoided(void **state) {
    static char       big[5000], page[12000];
    static const Step steps[] = {
        {"limit=500&", STEP_ANSWER, 200, page},
        {"limit=250&", STEP_ANSWER, 200, PAGE("1", "", ITEM("a"))},
        {"resourceVersion=1", STEP_HOLD, 0, big},
        {"limit=250&", STEP_ANSWER, 200, PAGE("2", "", ITEM("b"))},
    };
    Scene s = {0};
    (void)state;
    memset(big, ' ', sizeof big - 1);
    memset(page, ' ', sizeof page - 1);
    PLAY(s, steps, .body_bytes = 10000, .line_bytes = 4000);
    HOLDS(s, "b");
}

static void zero_characters_stop_nothing(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 200,
         PAGE("1", "", "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"x\":\"\\u0000\"}}}")},
        {"resourceVersion=1", STEP_LINES, 0, EVENT("ADDED", "b", "2")},
    };
    Scene s = {0};
    (void)state;
    PLAY(s, steps, 0);
    HOLDS(s, "a", "b");
}

static void may_be_stopped_by_its_sink(void **state) {
    static const Step steps[] = {
        {"limit", STEP_ANSWER, 200, PAGE("1", "", ITEM("a") "," ITEM("b"))},
        {"resourceVersion=1", STEP_LINES, 0,
         EVENT("ADDED", "c", "2") "\n" EVENT("ADDED", "d", "3")},
    };
    (void)state;
    Scene s = {.stop_at = "a"};
    open_scene(&s, steps, 1, (KubeApiOptions){0});
    run_scene(&s);
    assert_int_equal(s.puts, 1);
    assert_int_equal(s.ends, 0);
    s = (Scene){.stop_at = "c"};
    PLAY(s, steps, 0);
    assert_int_equal(s.puts, 3);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_in_pages_and_follows),
        cmocka_unit_test(opaque_versions_are_encoded),
        cmocka_unit_test(lists_anew_after_410),
        cmocka_unit_test(an_expired_page_starts_over),
        cmocka_unit_test(a_cut_resumes_without_the_partial_line),
        cmocka_unit_test(nonsense_twice_lists_anew),
        cmocka_unit_test(a_missing_collection_is_asked_for_again),
        cmocka_unit_test(a_silent_watch_is_opened_again),
        cmocka_unit_test(large_pages_and_lines_are_avoided),
        cmocka_unit_test(zero_characters_stop_nothing),
        cmocka_unit_test(may_be_stopped_by_its_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
