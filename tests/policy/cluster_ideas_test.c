// The ideas of themis, gandiva and optimus on clusters small enough to compute by hand.
#include "tests/policy/cluster_case.h"

#include "policy/cluster/common/colocation.h"
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

static ClusterResult run(const ClusterCase *x, const char *policy, const char *set) {
    ClusterResult r;
    assert_int_equal(cluster_case_run(x, policy, set, 1, &arena, &r), ERR_OK);
    return r;
}

static double seconds(TimeNs t) { return (double)t / 1e9; }

static void classes(ClusterCase *x, const char *first, const char *second) {
    cluster_case_profiles(x, &arena);
    x->class_of[0] = profile_find(x->profiles, first);
    x->class_of[1] = profile_find(x->profiles, second);
    assert_true(x->class_of[0] != PROFILE_NONE && x->class_of[1] != PROFILE_NONE);
}

// When the first period is over, the short one is twice as late as it would be alone, the long one
// is not late at all.
static void test_themis_lends(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 1, &arena);
    const Job   jobs[] = {cluster_case_job(0, 10000, 1), cluster_case_job(10, 300, 1)};
    cluster_case_list(&x, jobs, 2, &arena);
    ClusterResult r = run(&x, "themis", "period_s=300");
    assert_true(seconds(r.ends[1].start) == 300 && seconds(r.ends[1].finish) == 600);
    assert_true(r.ends[0].preemptions == 1 && seconds(r.ends[0].finish) == 10310);
}

// Strictly fair: the worst rho first. Otherwise the largest harm per GPU.
static void test_themis_auction(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 2, &arena);
    const Job   jobs[] = {cluster_case_job(0, 10000, 2), cluster_case_job(1, 100, 2),
                          cluster_case_job(1, 200, 1)};
    cluster_case_list(&x, jobs, 3, &arena);
    ClusterResult fair = run(&x, "themis", "fairness=1"), quick = run(&x, "themis", "fairness=0");
    assert_true(seconds(fair.ends[1].start) == 300 && seconds(fair.ends[2].start) > 300);
    assert_true(seconds(quick.ends[2].start) == 300 && seconds(quick.ends[1].start) > 300);
}

// Slices of 900 s, and 10 s of restart after each.
static void test_gandiva_slices(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 1, &arena);
    const Job   jobs[] = {cluster_case_job(0, 2000, 1), cluster_case_job(0, 2000, 1)};
    cluster_case_list(&x, jobs, 2, &arena);
    ClusterResult r = run(&x, "gandiva", "period_s=900");
    assert_true(seconds(r.ends[1].start) == 900);
    assert_true(seconds(r.ends[0].finish) == 3820 && seconds(r.ends[1].finish) == 4040);
    assert_true(r.ends[0].preemptions == 2 && r.ends[1].preemptions == 2);
}

// Two that use little of a GPU share one; when one has ended the other is as fast as alone.
static void test_gandiva_packs(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 1, &arena);
    const Job   jobs[] = {cluster_case_job(0, 3000, 1), cluster_case_job(0, 3000, 1)};
    cluster_case_list(&x, jobs, 2, &arena);
    classes(&x, "vae", "lstm");
    ClusterResult r = run(&x, "gandiva", "elastic=0");
    const double  first = profile_pair(x.profiles, x.class_of[0], x.class_of[1]);
    const double  second = profile_pair(x.profiles, x.class_of[1], x.class_of[0]);
    const double  fast = first > second ? first : second, slow = first > second ? second : first;
    double        one = 3000 / fast, other = one + (3000 - one * slow);
    double        a = seconds(r.ends[0].finish), b = seconds(r.ends[1].finish);
    assert_true(first + second > 1.3 && r.ends[0].start == 0 && r.ends[1].start == 0);
    assert_true(fabs((a < b ? a : b) - one) < 0.01 * one);
    assert_true(fabs((a < b ? b : a) - other) < 0.01 * other);
    assert_true(r.preemptions == 0);
}

// Packs that get too little done together are not kept.
static void test_gandiva_keeps_good_packs_only(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 1, &arena);
    const Job   jobs[] = {cluster_case_job(0, 3000, 1), cluster_case_job(0, 3000, 1)};
    cluster_case_list(&x, jobs, 2, &arena);
    classes(&x, "res50", "res50");
    ClusterResult r = run(&x, "gandiva", "min_joint=1.3");
    assert_true(r.ends[1].start > 0 && r.preemptions > 0);
}

// Three GPUs are free on either server; a job moves so that four are together.
static void test_gandiva_defragments(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(2, 4, &arena);
    const Job   jobs[] = {cluster_case_job(0, 100, 3), cluster_case_job(0, 9000, 1),
                          cluster_case_job(0, 100, 3), cluster_case_job(0, 9000, 1),
                          cluster_case_job(200, 500, 4)};
    cluster_case_list(&x, jobs, 5, &arena);
    ClusterResult r = run(&x, "gandiva", "period_s=900");
    assert_true(seconds(r.ends[4].start) == 900 && seconds(r.ends[4].finish) == 1400);
    assert_true(r.ends[1].preemptions + r.ends[3].preemptions == 1);
    assert_true(seconds(run(&x, "fifo", NULL).ends[4].start) == 9000);
}

static void test_optimus_stops(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 1, &arena);
    const Job   jobs[] = {cluster_case_job(0, 1000, 1), cluster_case_job(10, 100, 1)};
    cluster_case_list(&x, jobs, 2, &arena);
    ClusterResult r = run(&x, "optimus", NULL);
    assert_true(seconds(r.ends[1].start) == 10 && seconds(r.ends[1].finish) == 110);
    assert_true(seconds(r.ends[0].finish) == 1110);
}

// bert does with the lowest level; what it leaves makes res18 as fast as 5 cores a GPU make it.
static void test_optimus_levels(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 8, &arena);
    const Job   jobs[] = {cluster_case_job(0, 3000, 4), cluster_case_job(0, 3000, 4)};
    cluster_case_list(&x, jobs, 2, &arena);
    classes(&x, "bert", "res18");
    ClusterResult r = run(&x, "optimus", NULL), usual = run(&x, "srtf", NULL);
    assert_true(seconds(r.ends[0].finish) <= 3001);
    assert_true(seconds(r.ends[1].finish) < 0.75 * 3000 && r.preemptions == 0);
    assert_true(seconds(usual.ends[1].finish) == 3000);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_themis_lends),
        cmocka_unit_test(test_themis_auction),
        cmocka_unit_test(test_gandiva_slices),
        cmocka_unit_test(test_gandiva_packs),
        cmocka_unit_test(test_gandiva_keeps_good_packs_only),
        cmocka_unit_test(test_gandiva_defragments),
        cmocka_unit_test(test_optimus_stops),
        cmocka_unit_test(test_optimus_levels),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
