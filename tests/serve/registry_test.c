// Models are loaded, served, replaced and unloaded, on a real engine.
#include "tests/serve/registry_fixture.h"

#include "tests/serve/registry_files.h"
#include "tests/runner.h"

static RegistryFixture g;

static int open_fixture(void **state) {
    (void)state;
    fixture_open(&g);
    return 0;
}

static int close_fixture(void **state) {
    (void)state;
    fixture_close(&g);
    return 0;
}

static void several_are_ready(void **state) {
    (void)state;
    FixtureCall k;
    float       data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    Tensor      in = matrix(1, 2, data);
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    fixture_model(&g, "adder", "3", write_adder(g.dir, "adder", 10, 2));
    fixture_model(&g, "gone", "1", "/nowhere/model.onnx")->set.required = false;
    fixture_start(&g);
    assert_false(registry_ready(g.registry));
    assert_int_equal(registry_count(g.registry), 3);
    assert_int_equal(registry_at(g.registry, 0)->state, MODEL_LOADING);
    fixture_settle(&g);
    assert_true(registry_ready(g.registry));
    assert_string_equal(registry_at(g.registry, 0)->name, "adder");
    ModelInfo *s = fixture_find(&g, "adder", NULL);
    assert_ptr_equal(s, fixture_find(&g, "adder", "3"));
    assert_null(fixture_find(&g, "adder", "4"));
    assert_null(fixture_find(&g, "nobody", NULL));
    assert_int_equal(s->signature.n_inputs, 1);
    assert_string_equal(s->signature.inputs[0].name, "x");
    assert_int_equal(s->signature.inputs[0].type.dims[0], DIM_UNKNOWN);
    assert_int_equal(strlen(s->sha256), 64);
    fixture_ask(&g, &k, s, &in);
    assert_int_equal(k.waits, 0);
    assert_int_equal(k.end, LIVE_DONE);
    assert_true(k.first[0] == 11);
    ModelInfo *gone = fixture_find(&g, "gone", NULL);
    assert_int_equal(gone->state, MODEL_UNAVAILABLE);
    assert_non_null(strstr(gone->reason, "No such file"));
    assert_null(strstr(gone->reason, "/nowhere"));
    ModelInfo *kws = fixture_find(&g, "kws", NULL);
    assert_int_equal(kws->state, MODEL_READY);
    assert_true(kws->target_ns >= 1000000 && kws->memory_bytes > 0);
    assert_true(registry_estimate_ns(kws) > 0);
}

static void shapes_are_compiled_as_they_come(void **state) {
    (void)state;
    FixtureCall k;
    float       data[64] = {5};
    g.config.serve.shapes = 2;
    fixture_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, -1));
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "adder", NULL);
    for (int64_t n = 1; n <= 8; n++)
        for (int again = 0; again < 2; again++) {
            Tensor in = matrix(n, 8, data);
            fixture_ask(&g, &k, s, &in);
            if (again > 0) assert_int_equal(k.waits, 0);
            assert_int_equal(k.end, LIVE_DONE);
            assert_true(k.first[0] == 6);
            assert_int_equal(k.out[0].dims[0], n);
        }
}

// A few tenants of the engine serve all sizes, each request with the answer of its own size.
static void sizes_share_tenants(void **state) {
    (void)state;
    enum { SIZES = 128 };
    static float data[SIZES * 8];
    FixtureCall  k;
    bool         seen[LIVE_TENANTS] = {0};
    uint32_t     tenants = 0, own = 0;
    for (int i = 0; i < SIZES * 8; i++) data[i] = (float)i;
    fixture_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, 8));
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "adder", NULL);
    uint64_t   before = s->memory_bytes;
    for (int64_t i = 0; i < SIZES; i++) {
        int64_t n = 1 + i * 37 % SIZES;
        Tensor  in = matrix(n, 8, data);
        fixture_ask(&g, &k, s, &in);
        assert_int_equal(k.end, LIVE_DONE);
        assert_int_equal(k.out[0].dims[0], n);
        assert_true(k.first[0] == 1);
        tenants += !seen[k.shape.tenant];
        own += k.shape.program == NULL;
        seen[k.shape.tenant] = true;
    }
    assert_true(tenants <= 14 && own == tenants);  // 1, 2, 3, 4, 6, 8, ... 96, 128
    assert_true(s->memory_bytes - before < 16 << 20);
}

// A model of which nothing is compiled has an idle layer for each size.
static void sizes_of_a_model_without_layers(void **state) {
    (void)state;
    enum { SIZES = 300 };
    static float data[SIZES] = {5};
    FixtureCall  k;
    int64_t      dims[] = {-1};
    Msg          graph = {0};
    msg_sub(&graph, 1, node_of("Identity", "x", "y"));
    msg_sub(&graph, 11, info_of("x", 1, 1, dims));
    msg_sub(&graph, 12, info_of("y", 1, 1, dims));
    fixture_model(&g, "echo", "1", write_model(g.dir, "echo", model_of(graph, 13)));
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "echo", NULL);
    for (int64_t n = 1; n <= SIZES; n++) {
        Tensor in = tensor_of(DT_F32, 1, &n, data);
        fixture_ask(&g, &k, s, &in);
        assert_int_equal(k.end, LIVE_DONE);
        assert_true(k.first[0] == 5 && k.out[0].dims[0] == n);
    }
}

static const char *write_five(const char *dir) {
    float   five[] = {1, 2, 3, 4, 5};
    int64_t dims[] = {-1, -1};
    Msg     graph = {0};
    msg_sub(&graph, 1, node_of("Add", "x a", "y"));
    msg_sub(&graph, 5, floats_of("a", 5, five));
    msg_sub(&graph, 11, info_of("x", 1, 2, dims));
    msg_sub(&graph, 12, info_of("y", 1, 2, dims));
    return write_model(dir, "five", model_of(graph, 13));
}

// Five columns fit the constant, the six that five are rounded up to do not.
static void sizes_that_cannot_be_rounded_up_work(void **state) {
    (void)state;
    FixtureCall k;
    float       data[64] = {5};
    fixture_model(&g, "five", "1", write_five(g.dir));
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "five", NULL);
    for (int64_t rows = 1; rows <= 7; rows++)
        for (int64_t columns = 1; columns <= 6; columns++) {
            Tensor in = matrix(rows, columns, data);
            fixture_ask(&g, &k, s, &in);
            assert_int_equal(k.never, columns != 1 && columns != 5);
            if (k.never) continue;
            assert_int_equal(k.end, LIVE_DONE);
            assert_true(k.first[0] == 6 && k.out[0].dims[0] == rows && k.out[0].dims[1] == 5);
            fixture_ask(&g, &k, s, &in);
            assert_int_equal(k.waits, 0);
        }
}

static void shapes_that_cannot_be_are_never(void **state) {
    (void)state;
    FixtureCall k;
    float       data[64] = {5};
    Tensor      in = matrix(2, 8, data);
    fixture_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, 2));
    fixture_start(&g);
    fixture_settle(&g);
    fixture_ask(&g, &k, fixture_find(&g, "adder", NULL), &in);
    assert_true(k.never);
    assert_non_null(strstr(k.why, "adder"));
    fixture_ask(&g, &k, fixture_find(&g, "adder", NULL), &in);
    assert_true(k.never);
    assert_int_equal(k.waits, 0);
}

// The memory that it needs is held by other requests: not an error of the request, and not
// remembered. A shape that is too large for the whole memory is, whatever others hold.
static void shapes_wait_for_memory_of_others(void **state) {
    (void)state;
    enum { ROWS = 250000, MIB = 1 << 20 };
    FixtureCall k;
    float      *data = calloc(5 * ROWS, 8 * sizeof *data);
    Tensor      in = matrix(ROWS, 8, data), large = matrix(5 * ROWS, 8, data);
    fixture_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, -1))->set.buffered_mb = 64;
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "adder", NULL);
    s->memory.most = 64 * MIB;
    assert_true(budget_take(&s->memory, 56 * MIB));
    for (int i = 0; i < 2; i++) {
        fixture_ask(&g, &k, s, &in);
        assert_int_equal(k.found, SHAPE_CROWDED);
        assert_int_equal(k.waits > 0, i == 0);  // without more memory, it is not compiled again
        assert_non_null(strstr(k.why, "64 MiB that `buffered_mb` allows the model; retry later"));
    }
    fixture_ask(&g, &k, s, &large);
    assert_int_equal(k.found, SHAPE_TOO_LARGE);
    fixture_ask(&g, &k, s, &large);
    assert_int_equal(k.waits, 0);
    budget_give(&s->memory, 56 * MIB);
    fixture_ask(&g, &k, s, &in);
    assert_int_equal(k.found, SHAPE_READY);
    assert_int_equal(k.end, LIVE_DONE);
    fixture_ask(&g, &k, s, &large);
    assert_int_equal(k.found, SHAPE_TOO_LARGE);
    free(data);
}

// Shapes without requests make room for one that finds too little memory.
static void idle_shapes_make_room(void **state) {
    (void)state;
    enum { ROWS = 100000, MIB = 1 << 20 };
    FixtureCall k;
    float      *data = calloc(3 * ROWS, 8 * sizeof *data);
    fixture_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, -1));
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "adder", NULL);
    s->memory.most = 32 * MIB;
    for (int i = 0; i < 12; i++) {
        Tensor in = matrix(ROWS + (i % 6) * 4000, 8, data);
        fixture_ask(&g, &k, s, &in);
        if (k.found != SHAPE_READY) fail_msg("%s", k.why);
        assert_int_equal(k.end, LIVE_DONE);
    }
    free(data);
}

// A request that leaves before its shape is compiled does not harm the next with the same shape.
static void a_shape_without_requests_is_not_compiled(void **state) {
    (void)state;
    FixtureCall gone, k;
    float       data[64] = {5};
    Tensor      in = matrix(3, 8, data);
    fixture_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, -1));
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "adder", NULL);
    fixture_submit(&g, &gone, s, &in);
    assert_int_equal(gone.found, SHAPE_COMPILING);
    registry_cancel_wait(g.registry, s, &gone.when);
    registry_release(g.registry, s);
    fixture_ask(&g, &k, s, &in);
    assert_int_equal(k.end, LIVE_DONE);
    assert_true(k.first[0] == 6);
}

static void the_first_are_tuned(void **state) {
    (void)state;
    g.config.serve.tune = "load";
    g.config.serve.tune_s = 0.05;
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    fixture_start(&g);
    fixture_settle(&g);
    assert_int_equal(fixture_find(&g, "kws", NULL)->state, MODEL_READY);
}

static void failures_lead_to_quarantine(void **state) {
    (void)state;
    g.config.serve.quarantine = 3;
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "kws", NULL);
    registry_note_result(g.registry, s, MODEL_FAILED);
    registry_note_result(g.registry, s, MODEL_FAILED);
    registry_note_result(g.registry, s, MODEL_WORKED);
    registry_note_result(g.registry, s, MODEL_FAILED);
    registry_note_result(g.registry, s, MODEL_FAILED);
    assert_int_equal(s->quarantined, 0);
    registry_note_result(g.registry, s, MODEL_FAILED);
    assert_true(s->quarantined > clock_now(clock_monotonic()) + INT64_C(50000000000));
    registry_note_result(g.registry, s, MODEL_WORKED);
    assert_int_equal(s->quarantined, 0);
}

// The zoo's model runs in its warm-up.
static void stuck_runs_of_a_model_that_worked_do_not_count(void **state) {
    (void)state;
    g.config.serve.quarantine = 2;
    fixture_model(&g, "kws", "1", "zoo:lstm_kws");
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "kws", NULL);
    for (int i = 0; i < 5; i++) registry_note_result(g.registry, s, MODEL_STUCK);
    assert_int_equal(s->quarantined, 0);
    registry_note_result(g.registry, s, MODEL_FAILED);
    registry_note_result(g.registry, s, MODEL_FAILED);
    assert_true(s->quarantined > 0);
}

static void stuck_runs_of_a_model_that_never_worked_count(void **state) {
    (void)state;
    g.config.serve.quarantine = 2;
    fixture_model(&g, "kws", "1", "zoo:lstm_kws")->set.warmup = 0;
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "kws", NULL);
    registry_note_result(g.registry, s, MODEL_STUCK);
    assert_int_equal(s->quarantined, 0);
    registry_note_result(g.registry, s, MODEL_STUCK);
    assert_true(s->quarantined > 0);
    registry_note_result(g.registry, s, MODEL_WORKED);
    for (int i = 0; i < 5; i++) registry_note_result(g.registry, s, MODEL_STUCK);
    assert_int_equal(s->quarantined, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_are_tuned, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(several_are_ready, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(shapes_are_compiled_as_they_come, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(sizes_share_tenants, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(sizes_of_a_model_without_layers, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(sizes_that_cannot_be_rounded_up_work, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(shapes_that_cannot_be_are_never, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(shapes_wait_for_memory_of_others, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(idle_shapes_make_room, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_shape_without_requests_is_not_compiled, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(failures_lead_to_quarantine, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(stuck_runs_of_a_model_that_worked_do_not_count,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(stuck_runs_of_a_model_that_never_worked_count, open_fixture,
                                        close_fixture),
    };
    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
