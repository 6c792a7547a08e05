// Every policy on random jobs: its plans pass the audit, rewards add up to completion times, and a
// second run gives the same bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/profile/class_assignment.h"
#include "cluster/profile/profiles.h"
#include "policy/policies.h"
#include "tests/cluster/plan_checker.h"
#include "tests/runner.h"

enum { JOBS = 250, SERVERS = 5 };

static Arena           arena;
static ClusterProfiles profiles;

static int begin(void **state) {
    (void)state;
    if (arena_init(&arena, (size_t)1 << 30) != ERR_OK) return -1;
    return profile_load(NULL, &arena, &profiles) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

typedef struct ClusterScenario {
    const char *about;
    bool        classes, fractions, whole_seconds;
    uint64_t    gap_s;
    bool        restricted;  // most jobs may run on some servers only
    bool        no_gpus;     // some jobs have none
} ClusterScenario;

static const ClusterScenario scenes[] = {
    {"GPUs alone", false, false, true, 60, false, false},
    {"classes", true, false, false, 120, false, false},
    {"classes, now and then a job", true, false, false, 1500, false, false},
    {"classes and parts of GPUs", true, true, false, 60, false, false},
    {"some servers", false, false, false, 60, true, false},
    {"classes, some servers", true, false, false, 120, true, false},
    {"parts and none of GPUs, some servers", true, true, false, 60, true, true}};

static JobList jobs_of(const ClusterScenario *k, uint64_t seed) {
    static const char    *tenants[] = {"a", "b", "c"};
    static const uint32_t sizes[] = {1, 1, 1, 1, 2, 4, 8, 16};
    JobList l = {.at = arena_new(&arena, Job, JOBS), .n = JOBS, .tenants = tenants, .n_tenants = 3};
    Rng     r = {seed};
    TimeNs  now = 0;
    for (uint32_t i = 0; i < JOBS; i++) {
        bool part = k->fractions && rng_below(&r, 2) == 0;
        now += (TimeNs)rng_below(&r, 2 * k->gap_s) * CLUSTER_SECOND;
        TimeNs work = (60 + (TimeNs)(600 * rng_exp(&r))) * CLUSTER_SECOND;
        l.at[i] = (Job){.id = arena_printf(&arena, "j%u", i),
                        .row = i,
                        .submit = now,
                        .work = work,
                        .iterations = work / (CLUSTER_SECOND / 2),
                        .iteration = CLUSTER_SECOND / 2,
                        .gpus = part ? 1 : sizes[rng_below(&r, 8)],
                        .gpu_milli = part ? 100 + (uint32_t)rng_below(&r, 900) : CLUSTER_WHOLE_GPU,
                        .model = JOB_NONE,
                        .tenant = (uint32_t)rng_below(&r, 3)};
        if (!k->whole_seconds) l.at[i].submit += (TimeNs)rng_below(&r, 1000000000);
        if (i > 0 && l.at[i].submit < l.at[i - 1].submit) l.at[i].submit = l.at[i - 1].submit;
    }
    return l;
}

// Two to four servers, which hold every job; equal sets share one pointer.
static void restrict_jobs(const ClusterScenario *k, JobList *l, uint64_t seed) {
    enum { SETS = 6 };
    uint64_t *sets = arena_new(&arena, uint64_t, SETS);
    Rng       r = {seed + 77};
    for (uint32_t i = 0; i < SETS; i++)
        for (uint64_t n = 2 + rng_below(&r, 3); (uint64_t)__builtin_popcountll(sets[i]) < n;)
            sets[i] |= UINT64_C(1) << rng_below(&r, SERVERS);
    for (uint32_t i = 0; i < l->n; i++) {
        Job *j = &l->at[i];
        if (rng_below(&r, 4) > 0) j->servers = &sets[rng_below(&r, SETS)];
        if (!k->no_gpus || rng_below(&r, 6) > 0) continue;
        j->gpus = j->gpu_milli = 0;
        j->cores_milli = 1000 + (uint32_t)rng_below(&r, 20000);
        j->memory_mib = 1024;
    }
}

// False: the policy does not support such scenarios, and returns an error.
static bool choose(const ClusterPolicy *p, ClusterRun *run) {
    Settings     s = {.rows = p->rows,
                      .n_rows = p->n_rows,
                      .values = arena_alloc(&arena, 1, p->settings_size + 1, 16),
                      .arena = &arena};
    ClusterSetup setup;
    if (p->n_rows > 0) settings_default(&s);
    run->policy = p;
    run->settings = s.values;
    run->knows = p->knows;
    assert_int_equal(cluster_sim_params("own", p, &run->params), ERR_OK);
    assert_int_equal(cluster_setup(run, &arena, &setup), ERR_OK);
    if (p->load == NULL || p->load(&setup, s.values, &arena, &run->loaded) == ERR_OK) return true;
    print_message("%s: %s\n", p->name, err_why());
    return false;
}

static ClusterResult simulate(const ClusterRun *x) {
    ClusterResult r;
    if (cluster_simulate(x, &arena, &r) != ERR_OK) fail_msg("%s", err_why());
    return r;
}

static void check(const ClusterScenario *k, const ClusterPolicy *p, uint64_t seed) {
    ServerList      servers;
    ClassAssignment classes;
    PlanChecker     a;
    JobList         l = jobs_of(k, seed);
    if (k->restricted) restrict_jobs(k, &l, seed);
    ServerSpec like = {.gpus = 8, .gpu_type = "v100"};
    assert_int_equal(server_list_equal(SERVERS, &like, &arena, &servers), ERR_OK);
    ClusterRun x = {.jobs = &l, .servers = &servers, .seed = seed};
    if (k->classes) {
        assert_int_equal(class_assignment_draw(&profiles, &l, NULL, (Rng){seed}, &arena, &classes),
                         ERR_OK);
        x.profiles = &profiles;
        x.class_of = classes.class_of;
    }
    if (!choose(p, &x)) return;
    ClusterRun    checked = x;
    ClusterResult r = simulate(&x);
    plan_checker_open(&a, &checked, 0, &arena);
    ClusterResult again = simulate(&checked);
    uint64_t      sum = 0;
    for (uint32_t i = 0; i < r.n; i++) {
        const ClusterEnd *e = &r.ends[i];
        assert_true(e->start >= l.at[i].submit);
        if (!k->classes) assert_true(e->finish - e->start >= l.at[i].work);
        sum += (uint64_t)(e->finish - l.at[i].submit);
    }
    assert_true(sum == r.alive_ns);
    assert_memory_equal(r.ends, again.ends, r.n * sizeof *r.ends);
    assert_int_equal(a.steps, r.starts + r.preemptions + r.levels);
    assert_true(p->preempts || r.preemptions == 0);
}

static void test_every_policy(void **state) {
    (void)state;
    const ClusterPolicy *p;
    for (uint32_t i = 0; (p = policies_cluster_at(i)) != NULL; i++)
        for (size_t k = 0; k < sizeof scenes / sizeof *scenes; k++) {
            size_t mark = arena.used;
            check(&scenes[k], p, 1 + k);
            arena_rewind(&arena, mark);
        }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_policy)};
    return cmocka_run_group_tests(tests, begin, end);
}
