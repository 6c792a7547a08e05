// Every cluster policy on random mixed traces: its plans are legal (the simulator aborts
// otherwise), every job ends, and the same seed gives the same bytes.
#include "tests/policy/cluster_case.h"
#include "tests/runner.h"

enum { JOBS = 220 };

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)4 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

// Synergy needs whole GPUs and equal servers. Learned policies are slow, so they get every fifth
// case.
static bool suits(const ClusterPolicy *p, uint32_t with) {
    uint32_t never =
        CLUSTER_CASE_PARTS | CLUSTER_CASE_CPU | CLUSTER_CASE_TYPES | CLUSTER_CASE_UNLIKE;
    if (p->learned) return with % 5 == 0;
    return strncmp(p->name, "synergy", 7) != 0 || (with & never) == 0;
}

static void run(const ClusterCase *x, const char *policy, uint64_t seed, ClusterResult *r) {
    *r = (ClusterResult){0};
    if (cluster_case_run(x, policy, NULL, seed, &arena, r) != ERR_OK)
        fail_msg("%s: %s", policy, err_why());
    for (uint32_t i = 0; i < r->n; i++) {
        assert_true(r->ends[i].start >= x->jobs.at[i].submit);
        assert_true(r->ends[i].finish > r->ends[i].start);
    }
}

static void test_all_end(void **state) {
    (void)state;
    const ClusterPolicy *p;
    for (uint32_t k = 0; (p = policies_cluster_at(k)) != NULL; k++) {
        for (uint32_t with = 0; with < CLUSTER_CASE_KINDS; with++) {
            if (!suits(p, with)) continue;
            size_t        mark = arena.used;
            ClusterCase   x = cluster_case_random(with, JOBS, with + 1, &arena);
            ClusterResult r;
            run(&x, p->name, 1, &r);
            arena_rewind(&arena, mark);
        }
    }
}

// With limits on stops: the simulator aborts when a plan breaks them.
static void test_stop_limits(void **state) {
    (void)state;
    const ClusterPolicy *p;
    for (uint32_t k = 0; (p = policies_cluster_at(k)) != NULL; k++) {
        for (uint32_t with = p->preempts ? 0 : CLUSTER_CASE_KINDS; with < CLUSTER_CASE_KINDS;
             with += 1 + with % 3) {
            if (!suits(p, with)) continue;
            size_t        mark = arena.used;
            ClusterCase   x = cluster_case_random(with, JOBS, 7000 + with, &arena);
            ClusterResult r;
            x.params.stops = (ClusterStopLimits){(50 + with) * CLUSTER_SECOND, 1 + with % 3};
            run(&x, p->name, 1, &r);
            for (uint32_t i = 0; i < r.n; i++)
                assert_true(r.ends[i].preemptions <= x.params.stops.max_stops);
            arena_rewind(&arena, mark);
        }
    }
}

// Elastic jobs, with and without limits on stops; those that know of elasticity use it.
static void test_elastic(void **state) {
    (void)state;
    const ClusterPolicy *p;
    for (uint32_t k = 0; (p = policies_cluster_at(k)) != NULL; k++) {
        uint64_t rescales = 0;
        for (uint32_t with = 0; with < CLUSTER_CASE_KINDS; with += 5) {
            if (!suits(p, with)) continue;
            size_t        mark = arena.used;
            ClusterCase   x = cluster_case_random(with | CLUSTER_CASE_ELASTIC, JOBS, with, &arena);
            ClusterResult r;
            if (with % 2 == 0) x.params.stops = (ClusterStopLimits){100 * CLUSTER_SECOND, 1};
            run(&x, p->name, 1, &r);
            rescales += r.rescales;
            arena_rewind(&arena, mark);
        }
        bool knows = strcmp(p->name, "pollux") == 0 || strcmp(p->name, "optimus") == 0 ||
                     strcmp(p->name, "maifs") == 0;
        assert_true(!knows || rescales > 100);
    }
}

static void test_same_seed_same_run(void **state) {
    (void)state;
    const ClusterPolicy *p;
    for (uint32_t k = 0; (p = policies_cluster_at(k)) != NULL; k++)
        for (uint32_t with = 0; with < CLUSTER_CASE_KINDS; with += 17) {
            if (!suits(p, with)) continue;
            size_t        mark = arena.used;
            ClusterCase   x = cluster_case_random(with, JOBS, 1000 + with, &arena);
            ClusterResult a, b;
            run(&x, p->name, 3, &a);
            run(&x, p->name, 3, &b);
            assert_memory_equal(a.ends, b.ends, JOBS * sizeof *a.ends);
            arena_rewind(&arena, mark);
        }
}

static void test_tables(void **state) {
    (void)state;
    const ClusterPolicy *p;
    for (uint32_t k = 0; (p = policies_cluster_at(k)) != NULL; k++) {
        assert_ptr_equal(policies_cluster_find(p->name), p);
        assert_true(strlen(p->about) > 0 && p->decide != NULL);
        assert_true(p->n_rows == 0 || p->settings_size > 0);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_all_end),
        cmocka_unit_test(test_stop_limits),
        cmocka_unit_test(test_elastic),
        cmocka_unit_test(test_same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
