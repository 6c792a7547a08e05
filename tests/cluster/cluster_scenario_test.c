// A seed always draws the same jobs; measurement windows never overlap tuning and training windows;
// the load is as requested; jobs that fit no server are left out.
#include "cluster/cluster_scenario.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/runner.h"

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 29) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static ClusterScenario open_scene(const ClusterScenarioSpec *spec) {
    ClusterScenario s;
    if (cluster_scenario_open(spec, &arena, &s) != ERR_OK) fail_msg("%s", err_why());
    return s;
}

static ClusterScenarioDraw draw(const ClusterScenario *s, uint64_t seed) {
    ClusterScenarioDraw d;
    if (cluster_scenario_draw(s, seed, &arena, &d) != ERR_OK) fail_msg("%s", err_why());
    return d;
}

static bool equal(const ClusterScenarioDraw *a, const ClusterScenarioDraw *b) {
    if (a->jobs.n != b->jobs.n) return false;
    for (uint32_t i = 0; i < a->jobs.n; i++) {
        const Job *x = &a->jobs.at[i], *y = &b->jobs.at[i];
        if (strcmp(x->id, y->id) != 0 || x->submit != y->submit || x->work != y->work ||
            x->gpus != y->gpus || a->class_of[i] != b->class_of[i])
            return false;
    }
    return true;
}

static const char *const traces[] = {"synth:philly_small", "synth:openb_small", "philly_small",
                                     "openb_small", NULL};

static void same_seed_same_jobs(void **state) {
    (void)state;
    for (const char *const *t = traces; *t != NULL; t++) {
        ClusterScenario s = open_scene(&(ClusterScenarioSpec){.trace = *t, .jobs = 100, .load = 1});
        ClusterScenarioDraw a = draw(&s, 101), b = draw(&s, 101), c = draw(&s, 102);
        assert_true(equal(&a, &b));
        assert_false(equal(&a, &c));
    }
}

static void load_is_reached(void **state) {
    (void)state;
    const double loads[] = {0.3, 1, 2.5};
    for (const char *const *t = traces; *t != NULL; t++)
        for (int i = 0; i < 3; i++) {
            ClusterScenario s =
                open_scene(&(ClusterScenarioSpec){.trace = *t, .jobs = 100, .load = loads[i]});
            ClusterScenarioDraw d = draw(&s, 103);
            double              is = cluster_scenario_load(&d.jobs, s.servers.gpus);
            if (fabs(is - loads[i]) > 0.001 * loads[i])
                fail_msg("%s: %g is not %g", *t, is, loads[i]);
            assert_int_equal(d.jobs.at[0].submit, 0);
            for (uint32_t k = 1; k < d.jobs.n; k++)
                assert_true(d.jobs.at[k].submit >= d.jobs.at[k - 1].submit);
        }
}

// By rows of the file, as ids are.
static void parts_do_not_meet(void **state) {
    (void)state;
    ClusterScenario s = open_scene(&(ClusterScenarioSpec){.trace = "philly_small", .jobs = 60});
    uint32_t        last = 0, first = UINT32_MAX;
    for (uint64_t seed = 1; seed < 100; seed++) {
        ClusterScenarioDraw d = draw(&s, seed), e = draw(&s, seed + 999999);
        if (d.jobs.at[d.jobs.n - 1].row > last) last = d.jobs.at[d.jobs.n - 1].row;
        if (e.jobs.at[e.jobs.n - 1].row > last) last = e.jobs.at[e.jobs.n - 1].row;
        d = draw(&s, seed + 100);
        if (d.jobs.at[0].row < first) first = d.jobs.at[0].row;
        assert_int_equal(d.jobs.n, 60);
    }
    assert_true(last < first);
    TimeNs span = s.jobs.at[s.jobs.n - 1].submit - s.jobs.at[0].submit;
    assert_true(s.jobs.at[s.split].submit - s.jobs.at[0].submit >= span / 5 * 3);
    assert_true(s.jobs.at[s.split - 1].submit - s.jobs.at[0].submit < span / 5 * 3 + JOB_SECOND);
}

static void short_parts_give_short_windows(void **state) {
    (void)state;
    ClusterScenario s = open_scene(&(ClusterScenarioSpec){.trace = "philly_small", .jobs = 5000});
    ClusterScenarioDraw d = draw(&s, 101), e = draw(&s, 102);
    uint32_t            part = s.jobs.n - s.split;
    assert_int_equal(d.jobs.n, (part + 1) / 2);
    assert_false(equal(&d, &e));
    s = open_scene(&(ClusterScenarioSpec){.trace = "philly_small"});
    d = draw(&s, 101);
    assert_int_equal(d.jobs.n, s.jobs.n);
    assert_int_equal(d.jobs.n, 600);
}

static void what_fits_nowhere_is_left_out(void **state) {
    (void)state;
    ClusterScenario s = open_scene(&(ClusterScenarioSpec){.trace = "philly_small", .servers = "1"});
    ClusterScenarioDraw d = draw(&s, 101);
    assert_true(s.too_large > 0);
    assert_int_equal(d.jobs.n + s.too_large, 600);
    for (uint32_t i = 0; i < d.jobs.n; i++) assert_true(d.jobs.at[i].gpus <= 8);
    s = open_scene(&(ClusterScenarioSpec){.trace = "philly_small", .max_s = 3600});
    d = draw(&s, 101);
    assert_int_equal(d.jobs.n + s.long_ones, 600);
    for (uint32_t i = 0; i < d.jobs.n; i++) assert_true(d.jobs.at[i].work <= 3600 * JOB_SECOND);
    ClusterScenarioSpec small = {.trace = "openb_small", .like = {.gpus = 8, .cores_milli = 4000}};
    s = open_scene(&small);
    assert_true(s.too_large > 0);
    for (uint32_t i = 0; i < s.jobs.n; i++) assert_true(s.jobs.at[i].cores_milli <= 4000);
}

static const char nodes[] = "sn,cpu_milli,memory_mib,gpu,model\n"
                            "n0,96000,786432,8,T4\nn1,96000,786432,8,V100M16\nn2,96000,786432,0,\n";

static void servers_from_a_file(void **state) {
    (void)state;
    char       path[] = "/tmp/cotenant_scene_XXXXXX";
    AtomicFile f;
    int        fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(file_begin(&f, path), ERR_OK);
    (void)fputs(nodes, f.out);
    assert_int_equal(file_commit(&f), ERR_OK);
    ClusterScenario s = open_scene(&(ClusterScenarioSpec){.trace = "openb_small", .servers = path});
    assert_int_equal(remove(path), 0);
    assert_int_equal(s.servers.n, 3);
    assert_true(s.typed && s.too_large > 0);
    for (uint32_t i = 0; i < s.jobs.n; i++) {
        uint32_t types = s.jobs.at[i].gpu_types;
        bool     known = types == 0;
        for (uint32_t t = 0; t < s.jobs.n_gpu_types; t++)
            if ((types >> t & 1) != 0) known = known || strcmp(s.jobs.gpu_types[t], "G2") != 0;
        assert_true(known);
    }
    assert_true(fabs(s.profiles->share_cores - 18) < 1e-9);
}

static void equal_servers_hold_any_type(void **state) {
    (void)state;
    ClusterScenario s = open_scene(&(ClusterScenarioSpec){.trace = "openb_small", .servers = "40"});
    ClusterScenarioDraw d = draw(&s, 101);
    for (uint32_t i = 0; i < d.jobs.n; i++) assert_int_equal(d.jobs.at[i].gpu_types, 0);
    assert_int_equal(s.servers.racks, 3);
    assert_int_equal(s.servers.at[39].rack, 2);
    assert_true(fabs(s.profiles->share_cores - 12) < 1e-9);
    assert_true(fabs(s.profiles->share_gb - 96) < 1e-9);
    s = open_scene(&(ClusterScenarioSpec){.trace = "philly_small", .servers = "40"});
    assert_true(fabs(s.profiles->share_cores - 3) < 1e-9);
    assert_true(fabs(s.profiles->share_gb - 62.5) < 1e-9);
}

static void mix_and_no_profiles(void **state) {
    (void)state;
    ClusterScenario s =
        open_scene(&(ClusterScenarioSpec){.trace = "philly_small", .profiles = "none"});
    assert_null(s.profiles);
    assert_null(draw(&s, 101).class_of);
    ClusterScenario bad;
    assert_int_equal(
        cluster_scenario_open(&(ClusterScenarioSpec){.trace = "synth:nowhere"}, &arena, &bad),
        ERR_IO);
    assert_int_equal(
        cluster_scenario_open(&(ClusterScenarioSpec){.trace = "philly_small", .servers = "0"},
                              &arena, &bad),
        ERR_ARG);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_seed_same_jobs, begin, end),
        cmocka_unit_test_setup_teardown(load_is_reached, begin, end),
        cmocka_unit_test_setup_teardown(parts_do_not_meet, begin, end),
        cmocka_unit_test_setup_teardown(short_parts_give_short_windows, begin, end),
        cmocka_unit_test_setup_teardown(what_fits_nowhere_is_left_out, begin, end),
        cmocka_unit_test_setup_teardown(servers_from_a_file, begin, end),
        cmocka_unit_test_setup_teardown(equal_servers_hold_any_type, begin, end),
        cmocka_unit_test_setup_teardown(mix_and_no_profiles, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
