// Every policy of every tier runs with any settings inside their declared ranges: simulators abort
// on an illegal plan and on a standstill.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "chip/chip_scenario.h"
#include "tests/node/sim_fixture.h"
#include "tests/policy/cluster_case.h"
#include "tests/runner.h"

static Arena arena;
static char  drawn[2048];  // policy and settings of the run, for the message of an abort

static void say_drawn(int signal_number) {
    (void)signal_number;
    (void)!write(STDERR_FILENO, drawn, strlen(drawn));
    (void)!write(STDERR_FILENO, "\n", 1);
}

static int begin(void **state) {
    (void)state;
    (void)signal(SIGABRT, say_drawn);
    return arena_init(&arena, (size_t)4 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static uint32_t draws(uint32_t least) {
    return getenv("COTENANT_LONG") != NULL ? 20 * least : least;
}

// An end of the range, or a number within it: evenly, or evenly in its logarithm.
static double draw_number(Rng *r, double lo, double hi) {
    uint64_t how = rng_below(r, 5);
    if (how < 2) return how == 0 ? lo : hi;
    if (how < 4 && hi - lo > 10) return fmin(hi, lo + exp(rng_unit64(r) * log(hi - lo + 1)) - 1);
    return lo + rng_unit64(r) * (hi - lo);
}

// Planning with a million steps is legal but takes minutes.
static double work_limit(const Setting *row) {
    static const char *const work[] = {"evaluations", "simulations", "population", "tries", "jobs"};
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        if (strcmp(row->key, work[i]) == 0) return fmax(60, (double)row->lo.i);
    return INFINITY;
}

// Text names files and choices: it keeps its default.
static void draw_row(const Setting *row, Rng *r, char *values) {
    char *at = values + row->offset;
    if (row->kind == SETTING_bool) *(bool *)at = rng_below(r, 2) == 1;
    if (row->kind == SETTING_double) *(double *)at = draw_number(r, row->lo.d, row->hi.d);
    if (row->kind == SETTING_string || row->kind == SETTING_bool || row->kind == SETTING_double)
        return;
    double x = draw_number(r, (double)row->lo.i, fmin((double)row->hi.i, work_limit(row)));
    if (row->kind == SETTING_int) *(int *)at = (int)x;
    if (row->kind == SETTING_int64) *(int64_t *)at = (int64_t)x;
}

static void *draw_settings(const char *policy, const Setting *rows, uint32_t n, size_t size,
                           Rng *r) {
    char     text[64];
    Settings s = {rows, n, arena_alloc(&arena, 1, size + 1, 64), &arena};
    size_t   len = (size_t)snprintf(drawn, sizeof drawn, "%s", policy);
    bool     all = rng_below(r, 2) == 0;
    if (n > 0) settings_default(&s);
    for (uint32_t i = 0; i < n; i++) {
        if (!all && rng_below(r, n) != 0) continue;
        draw_row(&rows[i], r, s.values);
        SettingValue v = setting_read(&rows[i], s.values);
        assert_true(setting_in_range(&rows[i], v));
        if (len < sizeof drawn)
            len += (size_t)snprintf(drawn + len, sizeof drawn - len, " %s=%s", rows[i].key,
                                    setting_text(&rows[i], v, text, sizeof text));
    }
    return s.values;
}

static void run_chip(const ChipScenario *x, const ChipPolicy *p, Rng *r) {
    size_t      mark = arena.used;
    ChipTrace   trace;
    ChipResult  result;
    ChipTraffic t = {.load = 0.2 + 2 * rng_unit64(r), .requests = 40, .seed = rng_u64(r) >> 1};
    assert_int_equal(chip_scenario_trace(x, &t, &arena, &trace), ERR_OK);
    ChipRun run = chip_scenario_run(x, trace);
    run.policy = p;
    run.settings = draw_settings(p->name, p->rows, p->n_rows, p->settings_size, r);
    run.sharing = rng_below(r, 2) == 0 ? CHIP_EQUAL : CHIP_MAX_MIN;
    if (p->load != NULL)
        assert_int_equal(p->load(&x->setup, run.settings, &arena, &run.loaded), ERR_OK);
    assert_int_equal(chip_simulate(&run, &arena, &result), ERR_OK);
    assert_int_equal(result.n, trace.n);  // the simulator checks that each has one answer
    arena_rewind(&arena, mark);
}

static void test_chip(void **state) {
    (void)state;
    static const char *const packages[] = {"4+4", "2+2"};
    Rng                      r = {20};
    for (uint32_t k = 0; k < 2; k++) {
        ChipScenario        x;
        ChipScenarioOptions o = {.package = packages[k],
                                 .workload = k == 0 ? "mixed" : "light",
                                 .bandwidth = k == 0 ? 6 : 16,
                                 .target = k == 0 ? 0.9 : 0};
        assert_int_equal(chip_scenario_open(&o, &arena, &x), ERR_OK);
        const ChipPolicy *p;
        for (uint32_t i = 0; (p = policies_chip_at(i)) != NULL; i++)
            for (uint32_t n = 0; n < draws(p->clairvoyant ? 3 : 30); n++) run_chip(&x, p, &r);
    }
}

static void run_cluster(const ClusterCase *x, const ClusterPolicy *p, Rng *r) {
    ClusterRun    run = {.jobs = &x->jobs,
                         .servers = &x->servers,
                         .profiles = x->profiles,
                         .class_of = x->class_of,
                         .params = x->params,
                         .policy = p,
                         .knows = p->knows,
                         .seed = 1};
    ClusterSetup  setup;
    ClusterResult result = {0};
    // The default limits: without them a short period stops jobs before they have restarted.
    run.params.stops = (ClusterStopLimits){300 * CLUSTER_SECOND, 4};
    run.settings = draw_settings(p->name, p->rows, p->n_rows, p->settings_size, r);
    assert_int_equal(cluster_setup(&run, &arena, &setup), ERR_OK);
    if (p->load != NULL)
        assert_int_equal(p->load(&setup, run.settings, &arena, &run.loaded), ERR_OK);
    if (cluster_simulate(&run, &arena, &result) != ERR_OK) fail_msg("%s: %s", drawn, err_why());
    for (uint32_t i = 0; i < result.n; i++)
        assert_true(result.ends[i].finish > result.ends[i].start);
}

static void test_cluster(void **state) {
    (void)state;
    const ClusterPolicy *p;
    Rng                  r = {21};
    for (uint32_t i = 0; (p = policies_cluster_at(i)) != NULL; i++)
        for (uint32_t n = 0; n < draws(p->learned ? 1 : 5); n++) {
            size_t   mark = arena.used;
            uint32_t with = CLUSTER_CASE_PROFILES;
            if (strncmp(p->name, "synergy", 7) != 0)
                with |= (uint32_t)rng_below(&r, CLUSTER_CASE_KINDS);
            ClusterCase x = cluster_case_random(with, 40, n + 1, &arena);
            run_cluster(&x, p, &r);
            arena_rewind(&arena, mark);
        }
}

static void test_node(void **state) {
    (void)state;
    const NodePolicy *p;
    SimFixture        s;
    Rng               r = {22};
    sim_fixture_open(&s, "server64");
    sim_fixture_add(&s, "resnet50", 15, 1);
    sim_fixture_add(&s, "mobilenet_v2", 10, 2);
    sim_fixture_add(&s, "bert_large", 130, 1);
    size_t fixture = s.arena.used;
    for (uint32_t i = 0; (p = policies_node_at(i)) != NULL; i++)
        for (uint32_t n = 0; n < draws(30); n++) {
            size_t     mark = arena.used;
            NodeResult result;
            NodeRun    run = sim_fixture_run(&s, NULL, 20 + 400 * rng_unit64(&r), 60, n + 1);
            run.policy = p;
            run.settings = draw_settings(p->name, p->rows, p->n_rows, p->settings_size, &r);
            if (node_sim(&run, &s.spec, &s.arena, &result) != ERR_OK)
                fail_msg("%s: %s", drawn, err_why());
            s.records = (RecordList){.arena = &s.arena};
            arena_rewind(&s.arena, fixture);
            arena_rewind(&arena, mark);
        }
    sim_fixture_close(&s);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chip),
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_node),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
