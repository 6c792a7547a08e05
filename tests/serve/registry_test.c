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
            assert_int_equal(k.waits, again == 0 ? 1 : 0);
            assert_int_equal(k.end, LIVE_DONE);
            assert_true(k.first[0] == 6);
            assert_int_equal(k.out[0].dims[0], n);
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

static void the_first_are_tuned(void **state) {
    (void)state;
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
        cmocka_unit_test_setup_teardown(shapes_that_cannot_be_are_never, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(failures_lead_to_quarantine, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(stuck_runs_of_a_model_that_worked_do_not_count,
                                        open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(stuck_runs_of_a_model_that_never_worked_count, open_fixture,
                                        close_fixture),
    };
    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
