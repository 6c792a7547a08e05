// Models are loaded, served, replaced and unloaded, on a real engine.
#include "tests/serve/fleet_ground.h"

#include "tests/serve/fleet_files.h"
#include "tests/runner.h"

static Ground g;

static int open_ground(void **state) {
    (void)state;
    ground_open(&g);
    return 0;
}

static int close_ground(void **state) {
    (void)state;
    ground_close(&g);
    return 0;
}

static void several_are_ready(void **state) {
    (void)state;
    GroundAsk k;
    float     data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    Tensor    in = matrix(1, 2, data);
    ground_model(&g, "kws", "1", "zoo:lstm_kws");
    ground_model(&g, "adder", "3", write_adder(g.dir, "adder", 10, 2));
    ground_model(&g, "gone", "1", "/nowhere/model.onnx")->set.required = false;
    ground_start(&g);
    assert_false(fleet_ready(g.fleet));
    assert_int_equal(fleet_count(g.fleet), 3);
    assert_int_equal(fleet_at(g.fleet, 0)->state, FLEET_LOADING);
    ground_settle(&g);
    assert_true(fleet_ready(g.fleet));
    assert_string_equal(fleet_at(g.fleet, 0)->name, "adder");
    Served *s = ground_find(&g, "adder", NULL);
    assert_ptr_equal(s, ground_find(&g, "adder", "3"));
    assert_null(ground_find(&g, "adder", "4"));
    assert_null(ground_find(&g, "nobody", NULL));
    assert_int_equal(s->port.n_inputs, 1);
    assert_string_equal(s->port.inputs[0].name, "x");
    assert_int_equal(s->port.inputs[0].type.dims[0], DIM_UNKNOWN);
    assert_int_equal(strlen(s->sha256), 64);
    ground_ask(&g, &k, s, &in);
    assert_int_equal(k.waits, 0);
    assert_int_equal(k.end, LIVE_DONE);
    assert_true(k.first[0] == 11);
    Served *gone = ground_find(&g, "gone", NULL);
    assert_int_equal(gone->state, FLEET_UNAVAILABLE);
    assert_non_null(strstr(gone->reason, "No such file"));
    assert_null(strstr(gone->reason, "/nowhere"));
    Served *kws = ground_find(&g, "kws", NULL);
    assert_int_equal(kws->state, FLEET_READY);
    assert_true(kws->target_ns >= 1000000 && kws->memory_bytes > 0);
    assert_true(fleet_estimate_ns(kws) > 0);
}

static void shapes_are_compiled_as_they_come(void **state) {
    (void)state;
    GroundAsk k;
    float     data[64] = {5};
    g.config.serve.shapes = 2;
    ground_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, -1));
    ground_start(&g);
    ground_settle(&g);
    Served *s = ground_find(&g, "adder", NULL);
    for (int64_t n = 1; n <= 8; n++)
        for (int again = 0; again < 2; again++) {
            Tensor in = matrix(n, 8, data);
            ground_ask(&g, &k, s, &in);
            assert_int_equal(k.waits, again == 0 ? 1 : 0);
            assert_int_equal(k.end, LIVE_DONE);
            assert_true(k.first[0] == 6);
            assert_int_equal(k.out[0].dims[0], n);
        }
}

static void shapes_that_cannot_be_are_never(void **state) {
    (void)state;
    GroundAsk k;
    float     data[64] = {5};
    Tensor    in = matrix(2, 8, data);
    ground_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, 2));
    ground_start(&g);
    ground_settle(&g);
    ground_ask(&g, &k, ground_find(&g, "adder", NULL), &in);
    assert_true(k.never);
    assert_non_null(strstr(k.why, "adder"));
    ground_ask(&g, &k, ground_find(&g, "adder", NULL), &in);
    assert_true(k.never);
    assert_int_equal(k.waits, 0);
}

static void the_first_are_tuned(void **state) {
    (void)state;
    g.config.serve.tune_s = 0.05;
    ground_model(&g, "kws", "1", "zoo:lstm_kws");
    ground_start(&g);
    ground_settle(&g);
    assert_int_equal(ground_find(&g, "kws", NULL)->state, FLEET_READY);
}

static void failures_lead_to_quarantine(void **state) {
    (void)state;
    g.config.serve.quarantine = 3;
    ground_model(&g, "kws", "1", "zoo:lstm_kws");
    ground_start(&g);
    ground_settle(&g);
    Served *s = ground_find(&g, "kws", NULL);
    fleet_note(g.fleet, s, true);
    fleet_note(g.fleet, s, true);
    fleet_note(g.fleet, s, false);
    fleet_note(g.fleet, s, true);
    fleet_note(g.fleet, s, true);
    assert_int_equal(s->quarantined, 0);
    fleet_note(g.fleet, s, true);
    assert_true(s->quarantined > clock_now(clock_steady()) + INT64_C(50000000000));
    fleet_note(g.fleet, s, false);
    assert_int_equal(s->quarantined, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_are_tuned, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(several_are_ready, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(shapes_are_compiled_as_they_come, open_ground,
                                        close_ground),
        cmocka_unit_test_setup_teardown(shapes_that_cannot_be_are_never, open_ground, close_ground),
        cmocka_unit_test_setup_teardown(failures_lead_to_quarantine, open_ground, close_ground),
    };
    return cmocka_run_group_tests(tests, ground_begin, ground_end);
}
