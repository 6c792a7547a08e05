// Quotas of tenants: limits hold under every policy, and guarantees come back in time.
#include "tests/policy/cluster_case.h"

#include "tests/runner.h"

enum { TENANTS = 3, JOBS = 150 };

static Arena       arena;
static const char *names[TENANTS] = {"a", "b", "c"};

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)2 << 30) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct Watch {
    TimeNs owed_since[TENANTS];  // -1: not owed
    TimeNs longest;              // time that a tenant below its guarantee waited
    double most[TENANTS];        // GPUs
} Watch;

static void after(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Watch *w = self;
    double used[TENANTS] = {0};
    bool   owed[TENANTS] = {false};
    (void)plan;
    (void)n;
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterJob *j = &v->tasks[v->running[i]].job;
        if (j->tenant < TENANTS) used[j->tenant] += (double)cluster_gpu_milli(j);
    }
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ClusterJob *j = &v->tasks[v->waiting[i]].job;
        if (j->tenant >= TENANTS) continue;
        double then = used[j->tenant] + (double)cluster_gpu_milli(j);
        owed[j->tenant] |= then <= (double)v->setup->tenants[j->tenant].guaranteed_milli;
    }
    for (uint32_t t = 0; t < TENANTS; t++) {
        w->most[t] = fmax(w->most[t], used[t] / 1e3);
        if (!owed[t]) w->owed_since[t] = -1;
        if (owed[t] && w->owed_since[t] < 0) w->owed_since[t] = v->now;
        if (owed[t] && v->now - w->owed_since[t] > w->longest)
            w->longest = v->now - w->owed_since[t];
    }
}

static ClusterCase random_case(uint32_t with, bool singles, uint64_t seed) {
    ClusterCase x = cluster_case_random(with, JOBS, seed, &arena);
    Rng         r = {seed + 1};
    x.jobs.tenants = names;
    x.jobs.n_tenants = TENANTS;
    for (uint32_t i = 0; i < JOBS; i++) {
        Job *j = &x.jobs.at[i];
        j->tenant = rng_below(&r, 10) == 0 ? JOB_NONE : (uint32_t)rng_below(&r, TENANTS);
        if (singles)
            *j = (Job){.id = "j",
                       .submit = j->submit,
                       .work = 4 * j->work,
                       .gpus = 1,
                       .gpu_milli = 1000,
                       .model = JOB_NONE,
                       .tenant = j->tenant};
        if (j->tenant == 0 && j->gpus > 8) j->gpus = 8;
    }
    return x;
}

static void run(const ClusterCase *x, const ClusterPolicy *p, const char *quota, Watch *w) {
    TenantShares  shares;
    ClusterResult r;
    ClusterSetup  setup;
    *w = (Watch){.owed_since = {-1, -1, -1}};
    assert_int_equal(tenant_shares_read(quota, "b=2", &arena, &shares), ERR_OK);
    ClusterRun run = {.jobs = &x->jobs,
                      .servers = &x->servers,
                      .profiles = x->profiles,
                      .class_of = x->class_of,
                      .params = x->params,
                      .tenants = &shares,
                      .policy = p,
                      .settings = cluster_case_settings(p, &arena, NULL),
                      .knows = p->knows,
                      .seed = 1,
                      .after = after,
                      .watcher = w};
    run.params.stops = (ClusterStopLimits){200 * CLUSTER_SECOND, 2};
    assert_int_equal(cluster_setup(&run, &arena, &setup), ERR_OK);
    assert_true(setup.quotas && setup.tenants[1].weight == 2);
    if (p->load != NULL) assert_int_equal(p->load(&setup, run.settings, &arena, &run.loaded), 0);
    assert_int_equal(cluster_simulate(&run, &arena, &r), ERR_OK);
}

static void test_limits_hold(void **state) {
    (void)state;
    const ClusterPolicy *p;
    for (uint32_t k = 0; (p = policies_cluster_at(k)) != NULL; k++)
        for (uint32_t with = 0; with < 4; with++) {
            size_t mark = arena.used;
            if (strncmp(p->name, "synergy", 7) == 0 && (with & CLUSTER_CASE_PARTS) != 0) continue;
            ClusterCase x = random_case(with, false, 50 + with);
            Watch       w;
            run(&x, p, "a=..8,b=8..16", &w);
            assert_true(w.most[0] <= 8 && w.most[1] <= 16);
            arena_rewind(&arena, mark);
        }
}

// b and c are owed GPUs for no longer than the time for which jobs may not be stopped and the
// period of the policy.
static void test_guarantees_come_back(void **state) {
    (void)state;
    static const struct {
        const char *policy;
        double      period_s;
    } with[] = {{"drf", 60}, {"themis", 300}, {"gavel", 900}, {"maifs", 900}};
    for (uint32_t k = 0; k < sizeof with / sizeof *with; k++)
        for (uint64_t seed = 1; seed <= 6; seed++) {
            size_t      mark = arena.used;
            ClusterCase x = random_case(CLUSTER_CASE_PROFILES, true, seed);
            Watch       w;
            run(&x, policies_cluster_find(with[k].policy), "b=8..,c=16..", &w);
            assert_true((double)w.longest / 1e9 <= 200 + with[k].period_s + 1);
            arena_rewind(&arena, mark);
        }
}

static void test_options(void **state) {
    (void)state;
    TenantShares s;
    assert_int_equal(tenant_shares_read("a=16,b=8..24,c=8..,d=..24", "a=2.5", &arena, &s), ERR_OK);
    assert_true(s.n == 4 && s.at[0].weight == 2.5);
    static const uint32_t want[][2] = {{16, 16}, {8, 24}, {8, 0}, {0, 24}};
    for (uint32_t i = 0; i < 4; i++)
        assert_true(s.at[i].guaranteed == want[i][0] && s.at[i].limit == want[i][1]);
    static const char *const bad[] = {"a",      "=3",    "a=",  "a=0",   "a=..",
                                      "a=9..8", "a=1.5", "a=x", "a=1..x"};
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tenant_shares_read(bad[i], NULL, &arena, &s), ERR_ARG);
    assert_int_equal(tenant_shares_read(NULL, "a=0", &arena, &s), ERR_ARG);
    assert_int_equal(tenant_shares_read("a=4", NULL, &arena, &s), ERR_OK);
    ClusterTenant t = {.name = "b", .weight = 1};
    bool          quotas;
    assert_int_equal(tenant_shares_apply(&s, 8, &t, 1, &quotas), ERR_ARG);
    t.name = "a";
    assert_int_equal(tenant_shares_apply(&s, 2, &t, 1, &quotas), ERR_ARG);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_limits_hold),
        cmocka_unit_test(test_guarantees_come_back),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
