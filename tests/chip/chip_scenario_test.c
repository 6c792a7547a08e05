#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "chip/chip_scenario.h"
#include "tests/chip/test_package.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 32) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static ChipScenario open_stage(ChipScenarioOptions o) {
    ChipScenario s;
    if (o.package == NULL) o.package = CHIP_SCENARIO_PACKAGE;
    if (o.workload == NULL) o.workload = "squeezenet1_1,mobilenet_v2,lstm_kws";
    assert_int_equal(chip_scenario_open(&o, &arena, &s), ERR_OK);
    return s;
}

static ChipTrace trace_of(const ChipScenario *s, ChipTraffic t) {
    ChipTrace x;
    assert_int_equal(chip_scenario_trace(s, &t, &arena, &x), ERR_OK);
    assert_int_equal(x.n, t.requests);
    return x;
}

static void test_setup(void **state) {
    (void)state;
    ChipScenario s =
        open_stage((ChipScenarioOptions){.bandwidth = 4, .period_us = 250, .target = 0.9});
    assert_int_equal(s.setup.n_units, 8);
    assert_int_equal(s.setup.n_kinds, 2);
    assert_int_equal(s.setup.n_tenants, 3);
    assert_int_equal(s.setup.period, 250000);
    assert_true(fabs((double)s.setup.bytes_ns - 4 * s.package.clock_mhz / 1e3) < 1e-6);
    assert_true(s.tenants[1].target == 0.9 && s.tenants[1].priority == 1);
    for (uint32_t u = 1; u < 8; u++) assert_true(s.setup.kind_of[u] >= s.setup.kind_of[u - 1]);
}

// The bandwidth changes neither the load nor the requests; shares and levels are equal.
static void test_trace(void **state) {
    (void)state;
    ChipScenario s = open_stage((ChipScenarioOptions){0}),
                 narrow = open_stage((ChipScenarioOptions){.bandwidth = 4});
    ChipTraffic t = {.load = 0.5, .requests = 20000, .seed = 3};
    ChipTrace   x = trace_of(&s, t), y = trace_of(&narrow, t);
    uint32_t    tenants[3] = {0}, levels[CHIP_LEVELS] = {0};
    assert_true(s.capacity == narrow.capacity);
    for (uint32_t i = 0; i < x.n; i++) {
        static const double level[] = {0.8, 1, 1.2};
        const ChipRequest  *r = &x.at[i];
        double best = fmax((double)s.models[r->tenant].rest_ns[0], CHIP_SCENARIO_LEAST_NS);
        assert_true(r->arrival == y.at[i].arrival && r->deadline == y.at[i].deadline);
        assert_true(fabs((double)(r->deadline - r->arrival) -
                         CHIP_SCENARIO_SLACK * level[r->level] * best) < 2);
        tenants[r->tenant]++;
        levels[r->level]++;
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(fabs(tenants[i] / 20000.0 - 1.0 / 3) < 0.02);
        assert_true(fabs(levels[i] / 20000.0 - 1.0 / 3) < 0.02);
    }
    double rate = 20000e9 / (double)x.at[x.n - 1].arrival;
    assert_true(fabs(rate / (0.5 * s.capacity) - 1) < 0.03);
    t.burst = 4;
    ChipTrace b = trace_of(&s, t);
    assert_true(fabs(20000e9 / (double)b.at[b.n - 1].arrival / rate - 1) < 0.15);
    t.load = 0;
    assert_int_equal(chip_scenario_trace(&s, &t, &arena, &x), ERR_ARG);
}

static void test_rules_of_deadlines(void **state) {
    (void)state;
    ChipScenarioOptions o = {.workload = "resnet50,yolo_v3,lstm_kws",
                             .deadlines = CHIP_DEADLINES_MLPERF};
    ChipScenario        s = open_stage(o);
    assert_true(chip_scenario_base_ns(&s, 0) == 15e6 && chip_scenario_base_ns(&s, 1) == 100e6);
    assert_true(chip_scenario_base_ns(&s, 2) == CHIP_SCENARIO_SLACK * CHIP_SCENARIO_LEAST_NS);
    o.deadlines = CHIP_DEADLINES_PLANARIA;
    s = open_stage(o);
    double    best = (double)s.models[0].rest_ns[0];
    ChipTrace x = trace_of(&s, (ChipTraffic){.load = 0.5, .requests = 200, .seed = 1});
    assert_true(fabs(chip_scenario_base_ns(&s, 0) - 4 * CHIP_SCENARIO_SLACK * best) < 1);
    for (uint32_t i = 0; i < x.n; i++) {
        static const double level[] = {0.25, 0.5, 1};
        const ChipRequest  *r = &x.at[i];
        assert_true(fabs((double)(r->deadline - r->arrival) -
                         chip_scenario_base_ns(&s, r->tenant) * level[r->level]) < 2);
    }
    o.slack = 2;
    s = open_stage(o);
    assert_true(fabs(chip_scenario_base_ns(&s, 0) - 2 * best) < 1);
}

// Under overload the answered rate stays below the capacity, and close to it.
static void test_capacity_bounds_what_runs(void **state) {
    (void)state;
    static const char *const packages[] = {"4+4", "2+2", NULL};
    static const char *const mixes[] = {"light", "squeezenet1_1,resnet50", NULL};
    for (int p = 0; packages[p] != NULL; p++)
        for (int m = 0; mixes[m] != NULL; m++) {
            ChipScenario s =
                open_stage((ChipScenarioOptions){.package = packages[p], .workload = mixes[m]});
            ChipRun run = chip_scenario_run(
                &s, trace_of(&s, (ChipTraffic){.load = 3, .requests = 400, .seed = 1}));
            ChipResult  r;
            ChipSummary all;
            run.policy = &test_package_fcfs;
            assert_int_equal(chip_simulate(&run, &arena, &r), ERR_OK);
            assert_int_equal(chip_summary(&run, &r, CHIP_NONE, &arena, &all), ERR_OK);
            // The shares of networks in a trace are random: hence the margin.
            double rate = r.n * 1e9 / (double)r.span;
            assert_true(rate < 1.1 * s.capacity && rate > 0.4 * s.capacity);
            assert_true(all.bandwidth_use <= 1 + 1e-6 && all.unit_use <= 1);
        }
}

static void test_refuses(void **state) {
    (void)state;
    ChipScenario s;
    assert_int_not_equal(
        chip_scenario_open(&(ChipScenarioOptions){.package = "nowhere", .workload = "light"},
                           &arena, &s),
        ERR_OK);
    assert_int_not_equal(
        chip_scenario_open(&(ChipScenarioOptions){.package = "4+4", .workload = "nothing"}, &arena,
                           &s),
        ERR_OK);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_setup),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_rules_of_deadlines),
        cmocka_unit_test(test_capacity_bounds_what_runs),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
