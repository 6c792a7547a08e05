// drf and gavel: shares of tenants and of GPU types.
#include "tests/policy/cluster_case.h"

#include "policy/cluster/gavel/gavel_fill.h"
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

static const char *tenants[] = {"a", "b"};

static Job of_tenant(uint32_t tenant, double submit_s, double work_s, uint32_t gpus) {
    Job j = cluster_case_job(submit_s, work_s, gpus);
    j.tenant = tenant;
    return j;
}

static void two_tenants(ClusterCase *x, const Job *jobs, uint32_t n) {
    cluster_case_list(x, jobs, n, &arena);
    x->jobs.tenants = tenants;
    x->jobs.n_tenants = 2;
}

// Tenant a fills its queue first; of two free GPUs b gets one.
static void test_drf_alternates(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 2, &arena);
    const Job   jobs[] = {of_tenant(0, 0, 100, 2), of_tenant(0, 1, 100, 1), of_tenant(0, 2, 100, 1),
                          of_tenant(1, 3, 100, 1)};
    two_tenants(&x, jobs, 4);
    ClusterResult r = run(&x, "drf", NULL);
    assert_true(seconds(r.ends[1].start) == 100 && seconds(r.ends[3].start) == 100);
    assert_true(seconds(r.ends[2].start) == 200);
}

// A tenant that holds everything gives half of it back after the patience of the other.
static void test_drf_takes_back(void **state) {
    (void)state;
    ClusterCase x = cluster_case_servers(1, 4, &arena);
    Job         jobs[6];
    for (uint32_t i = 0; i < 4; i++) jobs[i] = of_tenant(0, 0, 10000, 1);
    jobs[4] = of_tenant(1, 10, 100, 1);
    jobs[5] = of_tenant(1, 10, 100, 1);
    two_tenants(&x, jobs, 6);
    ClusterResult r = run(&x, "drf", "patience_s=600");
    assert_true(seconds(r.ends[4].start) == 660);
    assert_true(r.preemptions >= 1 && r.preemptions <= 2);
}

// The faster type goes to the job that gains more from it, and both rise to the same level.
static void test_fill_prefers_comparative_advantage(void **state) {
    (void)state;
    GavelFill f = {.n_types = 2, .gpus = {1, 1}};
    GavelJob  jobs[2] = {{.gpus = 1, .claim = 1, .speed = {4, 1}},
                         {.gpus = 1, .claim = 1, .speed = {1.5, 1}}};
    gavel_fill(&f, jobs, 2);
    assert_true(jobs[0].share[0] > jobs[1].share[0] && jobs[1].share[1] > jobs[0].share[1]);
    double a = jobs[0].share[0] * 4 + jobs[0].share[1];
    double b = jobs[1].share[0] * 1.5 + jobs[1].share[1];
    assert_true(a > 1 && b > 0.9);
}

// The level of the worst job, by trying every split of two types among three jobs.
static double best_level(const GavelJob *jobs, uint32_t steps) {
    double best = 0;
    for (uint32_t a = 0; a <= steps; a++)
        for (uint32_t b = 0; a + b <= steps; b++) {
            double first[3] = {(double)a / steps, (double)b / steps, 1 - (double)(a + b) / steps};
            for (uint32_t c = 0; c <= steps; c++)
                for (uint32_t d = 0; c + d <= steps; d++) {
                    double second[3] = {(double)c / steps, (double)d / steps,
                                        1 - (double)(c + d) / steps};
                    double level = INFINITY;
                    for (uint32_t i = 0; i < 3; i++) {
                        if (first[i] + second[i] > 1) level = 0;
                        level = fmin(level,
                                     (first[i] * jobs[i].speed[0] + second[i] * jobs[i].speed[1]) /
                                         jobs[i].claim);
                    }
                    best = fmax(best, level);
                }
        }
    return best;
}

static void test_fill_against_search(void **state) {
    (void)state;
    Rng    r = {5};
    double sum = 0, n = 40;
    for (uint32_t k = 0; k < n; k++) {
        GavelFill f = {.n_types = 2, .gpus = {1, 1}};
        GavelJob  jobs[3];
        double    level = INFINITY;
        for (uint32_t i = 0; i < 3; i++)
            jobs[i] = (GavelJob){.gpus = 1,
                                 .claim = 0.5 + rng_unit(&r),
                                 .speed = {1 + 3 * rng_unit(&r), 0.2 + rng_unit(&r)}};
        gavel_fill(&f, jobs, 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_true(jobs[i].share[0] + jobs[i].share[1] <= 1 + 1e-9);
            level = fmin(
                level, (jobs[i].share[0] * jobs[i].speed[0] + jobs[i].share[1] * jobs[i].speed[1]) /
                           jobs[i].claim);
        }
        assert_true(f.used[0] <= 1 + 1e-9 && f.used[1] <= 1 + 1e-9);
        double ratio = level / best_level(jobs, 20);
        assert_true(ratio > 0.75);
        sum += ratio / n;
    }
    print_message("water-filling reaches %.3f of the best level\n", sum);
    assert_true(sum > 0.9);
}

// With two types, the class that gains more from the fast one runs there.
static void test_gavel_chooses_types(void **state) {
    (void)state;
    static const char *types[2] = {"v100", "k80"};
    ClusterCase        x = cluster_case_servers(2, 1, &arena);
    const Job          jobs[] = {cluster_case_job(0, 1000, 1), cluster_case_job(0, 1000, 1)};
    cluster_case_list(&x, jobs, 2, &arena);
    for (uint32_t i = 0; i < 2; i++) x.servers.at[i].gpu_type = types[i];
    cluster_case_profiles(&x, &arena);
    x.class_of[0] = profile_find(x.profiles, "vae");
    x.class_of[1] = profile_find(x.profiles, "bert");
    const ClusterProfile *a = &x.profiles->at[x.class_of[0]], *b = &x.profiles->at[x.class_of[1]];
    uint32_t              k80 = profile_type(x.profiles, "k80");
    double                slow_a = a->iteration_s[0] / a->iteration_s[k80];
    double                slow_b = b->iteration_s[0] / b->iteration_s[k80];
    ClusterResult         r = run(&x, "gavel", "objective=max_min");
    assert_true(slow_a != slow_b);
    uint32_t loser = slow_a < slow_b ? 0 : 1;  // loses more on the slow type: runs on the fast one
    assert_true(r.ends[loser].finish < r.ends[1 - loser].finish);
}

// Policies that know speeds by type start a lone job on the fast server; others on the first one.
static void test_fast_type_first(void **state) {
    (void)state;
    static const char *const policies[] = {"maifs", "gavel", "srtf"};
    static const char       *types[2] = {"k80", "v100"};
    for (uint32_t p = 0; p < 3; p++) {
        ClusterCase x = cluster_case_servers(2, 4, &arena);
        const Job   jobs[] = {cluster_case_job(0, 1000, 1)};
        cluster_case_list(&x, jobs, 1, &arena);
        for (uint32_t i = 0; i < 2; i++) x.servers.at[i].gpu_type = types[i];
        cluster_case_profiles(&x, &arena);
        x.class_of[0] = profile_find(x.profiles, "bert");
        ClusterResult r = run(&x, policies[p], NULL);
        if (p < 2) assert_true(seconds(r.ends[0].finish) < 1001);
        if (p == 2) assert_true(seconds(r.ends[0].finish) > 5000);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drf_alternates),
        cmocka_unit_test(test_drf_takes_back),
        cmocka_unit_test(test_fill_prefers_comparative_advantage),
        cmocka_unit_test(test_fill_against_search),
        cmocka_unit_test(test_gavel_chooses_types),
        cmocka_unit_test(test_fast_type_first),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
