// No policy aborts a run because beliefs change or because another policy started what runs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/profile/class_assignment.h"
#include "cluster/profile/profiles.h"
#include "policy/policies.h"
#include "tests/cluster/unsettled_policy.h"
#include "tests/runner.h"

enum { JOBS = 200, SERVERS = 4, POLICIES = 64 };

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

static JobList jobs_of(bool fractions, uint64_t seed) {
    static const char    *tenants[] = {"a", "b", "c"};
    static const uint32_t sizes[] = {1, 1, 1, 1, 2, 4, 8, 16};
    JobList l = {.at = arena_new(&arena, Job, JOBS), .n = JOBS, .tenants = tenants, .n_tenants = 3};
    Rng     r = {seed};
    TimeNs  now = 0;
    for (uint32_t i = 0; i < JOBS; i++) {
        bool part = fractions && rng_below(&r, 2) == 0;
        now += (TimeNs)rng_below(&r, 120) * CLUSTER_SECOND;
        l.at[i] = (Job){.id = arena_printf(&arena, "j%u", i),
                        .row = i,
                        .submit = now,
                        .work = (60 + (TimeNs)(600 * rng_exp(&r))) * CLUSTER_SECOND,
                        .gpus = part ? 1 : sizes[rng_below(&r, 8)],
                        .gpu_milli = part ? 100 + (uint32_t)rng_below(&r, 900) : CLUSTER_WHOLE_GPU,
                        .model = JOB_NONE,
                        .tenant = (uint32_t)rng_below(&r, 3)};
    }
    return l;
}

typedef struct Choices {
    const ClusterPolicy *policies[POLICIES];
    const void          *settings[POLICIES], *loaded[POLICIES];
    uint32_t             n;
} Choices;

// Adds a policy, unless it does not support such jobs.
static void add(Choices *c, const ClusterPolicy *p, const ClusterSetup *setup) {
    Settings s = {p->rows, p->n_rows, arena_alloc(&arena, 1, p->settings_size + 1, 64), &arena};
    if (p->n_rows > 0) settings_default(&s);
    const void *loaded = NULL;
    if (p->load != NULL && p->load(setup, s.values, &arena, &loaded) != ERR_OK) return;
    c->policies[c->n] = p;
    c->settings[c->n] = s.values;
    c->loaded[c->n++] = loaded;
}

// Beliefs are unlike the truth, so that wrongly believed neighbours are part of the run.
static ClusterRun run_of(const JobList *l, const ServerList *servers, uint64_t seed) {
    InformationBeliefs *b = arena_new(&arena, InformationBeliefs, 1);
    ClassAssignment     classes;
    ClusterRun          x = {.jobs = l, .servers = servers, .seed = seed, .knows = CLUSTER_ORACLE};
    assert_int_equal(information_read("realistic,durations=estimated", &arena, &x.info), ERR_OK);
    assert_int_equal(class_assignment_draw(&profiles, l, NULL, (Rng){seed}, &arena, &classes),
                     ERR_OK);
    assert_int_equal(information_beliefs(&x.info, &profiles, classes.class_of, l->n, &arena, b),
                     ERR_OK);
    x.profiles = &profiles;
    x.class_of = classes.class_of;
    x.beliefs = b;
    x.params = (ClusterSimParams){.restart = 40 * CLUSTER_SECOND,
                                  .restart_wide = 60 * CLUSTER_SECOND,
                                  .restart_by_class = true};
    return x;
}

static void check(const ClusterPolicy *first, bool fractions, uint32_t stay, uint64_t seed) {
    JobList      l = jobs_of(fractions, seed);
    ServerSpec   like = {.gpus = 8, .gpu_type = "v100"};
    ServerList   servers;
    ClusterSetup setup;
    Choices      c = {.n = 0};
    assert_int_equal(server_list_equal(SERVERS, &like, &arena, &servers), ERR_OK);
    ClusterRun run = run_of(&l, &servers, seed);
    assert_int_equal(cluster_setup(&run, &arena, &setup), ERR_OK);
    add(&c, first, &setup);
    if (c.n == 0) return;
    const ClusterPolicy *p;
    for (uint32_t i = 0; stay > 0 && (p = policies_cluster_at(i)) != NULL; i++) add(&c, p, &setup);
    UnsettledPolicy x = {.inner = c.policies,
                         .settings = c.settings,
                         .loaded = c.loaded,
                         .n = c.n,
                         .stay = stay,
                         .scramble = true,
                         .rng = {seed}};
    unsettled_policy_open(&x, &run, &arena);
    ClusterResult r;
    if (cluster_simulate(&run, &arena, &r) != ERR_OK) fail_msg("%s: %s", first->name, err_why());
    for (uint32_t i = 0; i < r.n; i++) assert_true(r.ends[i].finish > l.at[i].submit);
    assert_true(stay == 0 || x.switches > 0);
}

static void each(uint32_t stay) {
    const ClusterPolicy *p;
    for (uint32_t i = 0; (p = policies_cluster_at(i)) != NULL; i++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            size_t mark = arena.used;
            check(p, seed % 2 == 0, stay, seed);
            arena_rewind(&arena, mark);
        }
}

static void test_beliefs_change_at_every_call(void **state) {
    (void)state;
    each(0);
}

static void test_policies_take_over_from_each_other(void **state) {
    (void)state;
    each(6);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beliefs_change_at_every_call),
        cmocka_unit_test(test_policies_take_over_from_each_other),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
