// Paths of endpoints, similar paths, and endpoints of other listeners.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/text.h"
#include "serve/rest/route.h"
#include "tests/runner.h"

typedef struct Case {
    const char *method, *path;
    uint32_t    where;
    RouteKind   kind;
    const char *name, *version;
} Case;

static const Case cases[] = {
    {"GET", "/v2", ROUTE_MAIN, ROUTE_SERVER, "", ""},
    {"GET", "/v2/", ROUTE_MAIN, ROUTE_SERVER, "", ""},
    {"GET", "/v2/health/live", ROUTE_MAIN, ROUTE_LIVE, "", ""},
    {"GET", "/v2/health/ready", ROUTE_OPS, ROUTE_READY, "", ""},
    {"GET", "/v2/models", ROUTE_MAIN, ROUTE_MODELS, "", ""},
    {"GET", "/v2/models/stats", ROUTE_MAIN, ROUTE_STATS, "", ""},
    {"GET", "/v2/models/a", ROUTE_MAIN, ROUTE_MODEL, "a", ""},
    {"GET", "/v2/models/a%2Db", ROUTE_MAIN, ROUTE_MODEL, "a-b", ""},
    {"GET", "/v2/models/a/versions/3", ROUTE_MAIN, ROUTE_MODEL, "a", "3"},
    {"GET", "/v2/models/a/versions/3/ready", ROUTE_MAIN, ROUTE_MODEL_READY, "a", "3"},
    {"GET", "/v2/models/a/config", ROUTE_MAIN, ROUTE_CONFIG, "a", ""},
    {"POST", "/v2/models/a/infer", ROUTE_MAIN, ROUTE_INFER, "a", ""},
    {"POST", "/v2/models/a/versions/12/infer", ROUTE_MAIN, ROUTE_INFER, "a", "12"},
    {"POST", "/v2/repository/index", ROUTE_ADMIN, ROUTE_INDEX, "", ""},
    {"POST", "/v2/repository/models/a/load", ROUTE_ADMIN, ROUTE_LOAD, "a", ""},
    {"POST", "/v2/repository/models/a/unload", ROUTE_MAIN | ROUTE_ADMIN, ROUTE_UNLOAD, "a", ""},
    {"GET", "/v2/trace/setting", ROUTE_MAIN, ROUTE_TRACE_SETTING, "", ""},
    {"POST", "/v2/models/a/trace/setting", ROUTE_MAIN, ROUTE_TRACE_SETTING, "a", ""},
    {"POST", "/v2/logging", ROUTE_MAIN, ROUTE_LOGGING, "", ""},
    {"GET", "/v2/systemsharedmemory/status", ROUTE_MAIN, ROUTE_REGIONS, "", ""},
    {"POST", "/v2/cudasharedmemory/region/a/register", ROUTE_MAIN, ROUTE_REGISTER, "a", ""},
    {"POST", "/v2/cudasharedmemory/unregister", ROUTE_MAIN, ROUTE_UNREGISTER, "", ""},
    {"DELETE", "/v2/logging", ROUTE_MAIN, ROUTE_WRONG_METHOD, NULL, NULL},
    {"GET", "/metrics", ROUTE_OPS, ROUTE_METRICS, "", ""},
    {"GET", "/why", ROUTE_OPS, ROUTE_MISSES, "", ""},
    {"GET", "/why/r%2D7", ROUTE_OPS, ROUTE_WHY, "r-7", ""},
    {"GET", "/why/a:b/c", ROUTE_OPS, ROUTE_NONE, "", ""},
    // Elsewhere, whatever the spelling.
    {"POST", "/v2/repository/index", ROUTE_MAIN, ROUTE_WRONG_LISTENER, NULL, NULL},
    {"GET", "/v2/repository/index", ROUTE_MAIN, ROUTE_WRONG_LISTENER, NULL, NULL},
    {"POST", "/v2/repository/models/a/load", ROUTE_OPS, ROUTE_WRONG_LISTENER, NULL, NULL},
    {"GET", "/metrics", ROUTE_MAIN, ROUTE_WRONG_LISTENER, NULL, NULL},
    {"POST", "/v2/models/a/infer", ROUTE_ADMIN, ROUTE_WRONG_LISTENER, NULL, NULL},
    {"POST", "/v2/./repository/index", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"POST", "/v2//repository/index", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"POST", "//v2/repository/index", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"POST", "/v2/repository%2findex", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"POST", "/v2/%72epository/index", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"POST", "/V2/repository/index", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"POST", "/v2/models/x/../../repository/index", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    // Methods.
    {"GET", "/v2/models/a/infer", ROUTE_MAIN, ROUTE_WRONG_METHOD, NULL, NULL},
    {"POST", "/v2", ROUTE_MAIN, ROUTE_WRONG_METHOD, NULL, NULL},
    {"get", "/v2", ROUTE_MAIN, ROUTE_WRONG_METHOD, NULL, NULL},
    {"DELETE", "/v2/models/a", ROUTE_MAIN, ROUTE_WRONG_METHOD, NULL, NULL},
    // Names.
    {"GET", "/v2/models/..", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/%2e%2e", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/a%2fb", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/a%00b", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/a%2", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/a%zz", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/a;id", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/$(id)", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/%252e", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/%c0%ae", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"GET", "/v2/models/", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    {"POST", "/v2/models//infer", ROUTE_MAIN, ROUTE_BAD_NAME, NULL, NULL},
    // Nothing.
    {"GET", "/", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"GET", "", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"GET", "v2", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"GET", "/v2/models/a/infer/", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"GET", "/v2/models/a/nothing", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
    {"GET", "/v3", ROUTE_MAIN, ROUTE_NONE, NULL, NULL},
};

static void paths(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Case *c = &cases[i];
        Route       r;
        route_find(text_of(c->method), text_of(c->path), c->where, &r);
        if (r.kind != c->kind) print_message("%s %s: %d\n", c->method, c->path, (int)r.kind);
        assert_int_equal(r.kind, c->kind);
        if (c->name != NULL) assert_string_equal(r.name, c->name);
        if (c->version != NULL) assert_string_equal(r.version, c->version);
    }
}

static void long_names(void **state) {
    char  path[400] = "/v2/models/";
    Route r;
    (void)state;
    memset(path + 11, 'a', 128);
    route_find((Str){"GET", 3}, (Str){path, 11 + 128}, ROUTE_MAIN, &r);
    assert_int_equal(r.kind, ROUTE_MODEL);
    assert_int_equal(strlen(r.name), 128);
    memset(path + 11, 'a', 300);
    route_find((Str){"GET", 3}, (Str){path, 11 + 129}, ROUTE_MAIN, &r);
    assert_int_equal(r.kind, ROUTE_BAD_NAME);
    route_find((Str){"GET", 3}, (Str){path, 11 + 300}, ROUTE_MAIN, &r);
    assert_int_equal(r.kind, ROUTE_BAD_NAME);
}

static void queries(void **state) {
    (void)state;
    assert_int_equal(route_query(text_of(""), "n", 7), 7);
    assert_int_equal(route_query(text_of("n=12"), "n", 7), 12);
    assert_int_equal(route_query(text_of("m=1&n=12"), "n", 7), 12);
    assert_int_equal(route_query(text_of("nn=1"), "n", 7), 7);
    assert_int_equal(route_query(text_of("n="), "n", 7), -1);
    assert_int_equal(route_query(text_of("n"), "n", 7), 7);
    assert_int_equal(route_query(text_of("n=1x"), "n", 7), -1);
    assert_int_equal(route_query(text_of("n=99999999999999999999"), "n", 7), -1);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths), cmocka_unit_test(long_names),
                                       cmocka_unit_test(queries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
