// Traces of a running engine: complete, of limited size, cancelled at any moment.
#include "tests/serve/registry_fixture.h"

#include <jansson.h>

#include "serve/observe/engine_trace.h"
#include "tests/runner.h"

static RegistryFixture g;
static const char     *names[64];

static int open_fixture(void **state) {
    (void)fixture_begin(state);
    fixture_open(&g);
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    fixture_start(&g);
    fixture_settle(&g);
    return 0;
}

static int close_fixture(void **state) {
    fixture_close(&g);
    return fixture_end(state);
}

static void done(void *self, EngineTrace *t) {
    (void)t;
    *(bool *)self = true;
}

static bool is_done(RegistryFixture *fixture, void *ctx) {
    (void)fixture;
    return *(bool *)ctx;
}

static EngineTrace *begin(TimeNs span, size_t most, bool *flag) {
    EngineTrace *t = NULL;
    *flag = false;
    check(engine_trace_start(&t, &(EngineTraceOptions){.loop = g.loop,
                                                       .engine = g.engine,
                                                       .span = span,
                                                       .most = most,
                                                       .names = names,
                                                       .n_names = 64,
                                                       .done = done,
                                                       .self = flag}));
    return t;
}

static void ask_some(uint32_t n) {
    static float numbers[1 << 20];
    ModelInfo   *s = fixture_find(&g, "kws", NULL);
    Tensor       in = s->signature.inputs[0].type;
    FixtureCall  k;
    for (int32_t i = 0; i < in.rank; i++)
        if (in.dims[i] < 0) in.dims[i] = 1;
    assert_in_range(tensor_count(&in), 1, 1 << 20);
    in.data = numbers;
    for (uint32_t i = 0; i < n; i++) {
        fixture_ask(&g, &k, s, &in);
        assert_int_equal(k.end, LIVE_DONE);
        names[k.shape.tenant] = s->name;
    }
}

static uint32_t count(const json_t *events, const char *ph, const char *name) {
    uint32_t n = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *e = json_array_get(events, i);
        n += strcmp(json_string_value(json_object_get(e, "ph")), ph) == 0 &&
             (name == NULL || strcmp(json_string_value(json_object_get(e, "name")), name) == 0);
    }
    return n;
}

static json_t *take(EngineTrace *t, bool *flag) {
    Str text;
    fixture_until(&g, is_done, flag);
    check(engine_trace_text(t, &text));
    json_t *doc = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    return doc;
}

static void shows_requests_and_blocks(void **state) {
    (void)state;
    bool         flag;
    EngineTrace *t = begin(INT64_C(30000000000), 8 << 20, &flag);
    ask_some(20);
    assert_false(flag);
    engine_trace_stop(t);
    json_t *doc = take(t, &flag), *events = json_object_get(doc, "traceEvents");
    assert_int_equal(count(events, "b", "kws"), 20);
    assert_int_equal(count(events, "e", "kws"), 20);
    assert_true(count(events, "X", NULL) >= 20);
    assert_int_equal(count(events, "M", "thread_name"), 2);
    assert_null(json_object_get(doc, "otherData"));
    json_decref(doc);
    engine_trace_destroy(t);
    t = begin(1000000, 8 << 20, &flag);  // a millisecond later nothing of that is left
    doc = take(t, &flag);
    assert_int_equal(count(json_object_get(doc, "traceEvents"), "b", NULL), 0);
    json_decref(doc);
    engine_trace_destroy(t);
}

static void is_bounded(void **state) {
    (void)state;
    bool         flag;
    EngineTrace *t = begin(INT64_C(60000000000), 1, &flag);  // the least there is: 64 KiB
    for (uint32_t i = 0; i < 2000 && !flag; i++) ask_some(1);
    assert_true(flag);
    json_t *doc = take(t, &flag), *other = json_object_get(doc, "otherData");
    Str     text;
    check(engine_trace_text(t, &text));
    assert_true(text.len <= 64 << 10);
    assert_true(json_is_true(json_object_get(other, "truncated")) ||
                json_integer_value(json_object_get(other, "lost_records")) > 0);
    json_decref(doc);
    engine_trace_destroy(t);
}

static void can_be_given_up(void **state) {
    (void)state;
    bool flag;
    engine_trace_destroy(NULL);
    for (int i = 0; i < 12; i++) {
        EngineTrace *t = begin(i % 3 == 0 ? 1000000 : INT64_C(60000000000), 1 << 20, &flag);
        ask_some(1);
        if (i % 3 == 1) engine_trace_stop(t);  // its thread writes, or has just posted
        engine_trace_destroy(t);
        ask_some(1);
    }
    EngineTrace *t = begin(1000000, 1 << 20, &flag);
    json_decref(take(t, &flag));
    engine_trace_destroy(t);
}

static void no_address_space(void **state) {
    (void)state;
    EngineTrace       *t = NULL;
    EngineTraceOptions o = {.loop = g.loop, .engine = g.engine, .span = 1, .most = (size_t)1 << 60};
    assert_int_equal(engine_trace_start(&t, &o), ERR_LIMIT);
    assert_null(t);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_requests_and_blocks),
        cmocka_unit_test(is_bounded),
        cmocka_unit_test(can_be_given_up),
        cmocka_unit_test(no_address_space),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
