// las, tiresias and synergy with restart costs: free GPUs are filled at once, and jobs stay where
// they are if possible.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/policy/cluster_sample.h"
#include "tests/runner.h"

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static ClusterSample servers_of(uint32_t n, uint32_t gpus) {
    ClusterSample s = {.servers = cluster_sample_servers(&arena, n, gpus),
                       .jobs = {.at = arena_new(&arena, Job, 32), .n_models = 32},
                       .class_of = arena_new(&arena, uint32_t, 32)};
    for (uint32_t i = 0; i < n; i++) s.servers.at[i].gpu_type = "";
    assert_int_equal(profile_load(NULL, &arena, &s.profiles), ERR_OK);
    return s;
}

static void add(ClusterSample *s, const char *class, uint32_t gpus, int64_t submit_s,
                int64_t work_s) {
    uint32_t n = s->jobs.n++;
    s->class_of[n] = profile_find(&s->profiles, class);
    s->jobs.at[n] = (Job){.id = "j",
                          .submit = submit_s * JOB_SECOND,
                          .work = work_s * JOB_SECOND,
                          .gpus = gpus,
                          .gpu_milli = 1000,
                          .model = n,
                          .tenant = JOB_NONE};
}

// Between periods there is no preemption, but free GPUs are allocated.
static void test_free_gpus_are_filled(void **state) {
    (void)state;
    static const char *const policies[] = {"las", "tiresias", NULL};
    static const char *const minutes[] = {"period_s=300", NULL};
    for (uint32_t p = 0; policies[p] != NULL; p++) {
        ClusterSample s = servers_of(1, 2);
        add(&s, "bert", 1, 0, 1000);
        add(&s, "bert", 1, 10, 1000);
        add(&s, "bert", 1, 20, 100);
        ClusterResult r = cluster_sample_run(&s, &arena, policies[p], minutes);
        assert_int_equal(r.ends[1].start, 10 * JOB_SECOND);
        assert_true(r.ends[2].start >= 300 * JOB_SECOND);
    }
}

// Alone it has all the cores that it likes; when others come it is cut, and goes on.
static void test_synergy_levels(void **state) {
    (void)state;
    ClusterSample s = servers_of(1, 8);
    add(&s, "res18", 1, 0, 2000);
    for (int i = 0; i < 7; i++) add(&s, "res18", 1, 100, 2000);
    ClusterResult r = cluster_sample_run(&s, &arena, "synergy_tune", NULL);
    assert_int_equal(r.preemptions, 0);
    assert_true(r.levels > 0);
    assert_true(r.ends[0].finish < 2000 * JOB_SECOND);
    for (uint32_t i = 1; i < 8; i++) assert_int_equal(r.ends[i].start, 100 * JOB_SECOND);
}

// Half of each of two servers is free when a gang comes that needs a whole one: one of the two that
// run makes room, the other stays.
static void test_synergy_makes_room_for_gangs(void **state) {
    (void)state;
    ClusterSample s = servers_of(2, 2);
    add(&s, "bert", 1, 0, 5000);
    add(&s, "bert", 1, 1, 100);
    add(&s, "bert", 1, 2, 5000);
    add(&s, "bert", 1, 3, 98);
    add(&s, "bert", 2, 50, 9000);
    ClusterResult r = cluster_sample_run(&s, &arena, "synergy_tune", NULL);
    assert_int_equal(r.ends[4].start, 101 * JOB_SECOND);
    assert_int_equal(r.preemptions, 1);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_gpus_are_filled),
        cmocka_unit_test(test_synergy_levels),
        cmocka_unit_test(test_synergy_makes_room_for_gangs),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
