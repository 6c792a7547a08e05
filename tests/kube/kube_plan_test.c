// Plans as steps on pods: gangs whole, plans that do not fit moved or refused, room by priority.
#include "base/rng.h"
#include "tests/kube/live_case.h"
#include "tests/runner.h"

static ClusterAction start(uint32_t task, const ClusterSlice *s, uint32_t n) {
    return (ClusterAction){.verb = CLUSTER_START, .task = task, .slices = s, .n_slices = n};
}

static uint32_t server_named(const ClusterView *v, const char *name) {
    for (uint32_t i = 0; i < v->setup->n_servers; i++)
        if (strcmp(v->setup->servers[i].name, name) == 0) return i;
    fail();
    return 0;
}

static void test_as_planned(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    live_case_node(c.state, "n0", 16, 4, "");
    live_case_node(c.state, "n1", 16, 4, "");
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "g-%d", i);
        live_case_pod(c.state, &(LiveCasePod){.name = name, .gang = "g", .min = 3, .gpus = 2});
    }
    const ClusterView *v = live_case_look(&c);
    ClusterSlice       s[] = {{.server = server_named(v, "n1"), .gpus = 4},
                              {.server = server_named(v, "n0"), .gpus = 2}};
    ClusterAction      a = start(v->waiting[0], s, 2);
    assert_int_equal(kube_plan_apply(&c.plan, v, &a, 1), ERR_OK);
    assert_true(c.plan.n == 3 && c.plan.notes[KUBE_NOTE_STARTED] == 1);
    v = live_case_look(&c);
    assert_true(v->n_running == 1 && v->tasks[v->running[0]].n_slices == 2);
    assert_true(v->servers[s[0].server].gpus == 0 && v->servers[s[1].server].gpus == 2);
    live_case_close(&c);
}

// Slices of 3 + 3 GPUs do not match pods of 2: the gang is put elsewhere, or nowhere.
static void test_moved_or_refused(void **state) {
    (void)state;
    for (int gpus = 4; gpus >= 3; gpus--) {
        LiveCase c;
        live_case_open(&c);
        live_case_node(c.state, "n0", 16, gpus, "");
        live_case_node(c.state, "n1", 16, gpus, "");
        for (int i = 0; i < 3; i++) {
            char name[8];
            (void)snprintf(name, sizeof name, "g-%d", i);
            live_case_pod(c.state, &(LiveCasePod){.name = name, .gang = "g", .min = 3, .gpus = 2});
        }
        const ClusterView *v = live_case_look(&c);
        ClusterSlice       s[] = {{.server = 0, .gpus = 3}, {.server = 1, .gpus = 3}};
        ClusterAction      a = start(v->waiting[0], s, 2);
        assert_int_equal(kube_plan_apply(&c.plan, v, &a, 1), ERR_OK);
        assert_int_equal(c.plan.n, gpus == 4 ? 3 : 0);
        assert_int_equal(c.plan.notes[gpus == 4 ? KUBE_NOTE_MOVED : KUBE_NOTE_REFUSED], 1);
        v = live_case_look(&c);
        assert_int_equal(v->n_running, gpus == 4);
        assert_int_equal(v->servers[0].gpus + v->servers[1].gpus, gpus == 4 ? 2 : 6);
        live_case_close(&c);
    }
}

static uint32_t evictions(const LiveCase *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->plan.n; i++) n += c->plan.steps[i].kind == KUBE_STEP_EVICT;
    return n;
}

static void fill(LiveCase *c, int priority) {
    live_case_node(c->state, "n0", 16, 4, "");
    live_case_node(c->state, "n1", 16, 4, "");
    live_case_pod(
        c->state,
        &(LiveCasePod){
            .name = "a-0", .gang = "a", .min = 2, .gpus = 2, .node = "n0", .phase = "Running"});
    live_case_pod(
        c->state,
        &(LiveCasePod){
            .name = "a-1", .gang = "a", .min = 2, .gpus = 2, .node = "n1", .phase = "Running"});
    live_case_pod(
        c->state,
        &(LiveCasePod){.name = "b", .gpus = 2, .node = "n0", .phase = "Running", .priority = 5});
    live_case_pod(
        c->state,
        &(LiveCasePod){.name = "c", .gpus = 2, .node = "n1", .phase = "Running", .priority = 5});
    live_case_pod(c->state, &(LiveCasePod){.name = "w", .gpus = 2, .priority = priority});
}

static void test_priority(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    fill(&c, 9);
    (void)live_case_look(&c);
    assert_int_equal(kube_plan_preempt(&c.plan, 4), ERR_OK);
    assert_int_equal(evictions(&c), 2);  // the gang of the lowest priority, all of it
    for (uint32_t i = 0; i < c.plan.n; i++) assert_string_equal(c.plan.steps[i].job->name, "a");
    assert_true(live_case_job(&c, "w")->waits_for_room);
    live_case_gone(c.state, "a-0");
    live_case_gone(c.state, "a-1");
    assert_int_equal(live_case_look(&c)->n_waiting, 0);  // room is kept for it, by the engine
    assert_int_equal(kube_plan_own(&c.plan, true, 4), ERR_OK);
    assert_true(c.plan.n == 1 && c.plan.steps[0].kind == KUBE_STEP_BIND);
    live_case_close(&c);
}

static void test_rules_of_preemption(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        LiveCase c;
        live_case_open(&c);
        fill(&c, i == 0 ? 0 : 9);  // 0: not above the lowest
        if (i == 1) c.rules.act = KUBE_ACT_BIND;
        if (i == 2) c.rules.preemption = KUBE_PREEMPT_NONE;
        if (i == 3) c.rules.stops.min_run = 100000 * CLUSTER_SECOND;
        (void)live_case_look(&c);
        assert_int_equal(kube_plan_preempt(&c.plan, 4), ERR_OK);
        assert_int_equal(evictions(&c), i == 4 ? 2 : 0);
        live_case_close(&c);
    }
}

// A policy's preemption needs a start in its place, of no lower priority.
static void test_by_policy(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        LiveCase c;
        live_case_open(&c);
        fill(&c, i == 1 ? 4 : 5);
        c.rules.preemption = KUBE_PREEMPT_POLICY;
        const ClusterView *v = live_case_look(&c);
        uint32_t           victim = live_case_job(&c, "b")->slot;
        ClusterSlice       s = {.server = server_named(v, "n0"), .gpus = 2};
        ClusterAction      a[] = {{.verb = CLUSTER_PREEMPT, .task = victim},
                                  start(v->waiting[0], &s, 1)};
        assert_int_equal(kube_plan_apply(&c.plan, v, a, i == 2 ? 1 : 2), ERR_OK);
        assert_int_equal(evictions(&c), i == 0);
        assert_int_equal(c.plan.notes[KUBE_NOTE_NOT_EVICTED], i != 0);
        live_case_close(&c);
    }
}

// Only fungible pods change, within their bounds and what the node has.
static void test_resize(void **state) {
    (void)state;
    static const char bounds[] =
        "\"cotenant.io/fungible\":\"true\",\"cotenant.io/cores-min\":\"1\","
        "\"cotenant.io/cores-max\":\"6\"";
    for (int i = 0; i < 3; i++) {
        LiveCase c;
        live_case_open(&c);
        c.rules.resize = true;
        live_case_node(c.state, "n0", i == 1 ? 4 : 16, 4, "");
        live_case_pod(c.state, &(LiveCasePod){.name = "a",
                                              .gpus = 1,
                                              .node = "n0",
                                              .cpu = "2",
                                              .phase = "Running",
                                              .notes = i == 2 ? NULL : bounds});
        const ClusterView *v = live_case_look(&c);
        ClusterSlice       s = v->tasks[v->running[0]].slices[0];
        ClusterAction      a = {
                 .verb = CLUSTER_RESIZE, .task = v->running[0], .slices = &s, .n_slices = 1};
        s.cores_milli = 8000;
        assert_int_equal(kube_plan_apply(&c.plan, v, &a, 1), ERR_OK);
        assert_int_equal(c.plan.n, i == 0);
        if (i == 0) assert_int_equal(c.plan.steps[0].cores_milli, 6000);
        live_case_close(&c);
    }
}

// Random clusters: whatever is planned, what is assumed fits, and gangs start whole.
static void test_random_plans(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        LiveCase c;
        Rng      r = {seed};
        live_case_open(&c);
        for (int i = 0; i < 6; i++) {
            char name[8];
            (void)snprintf(name, sizeof name, "n%d", i);
            live_case_node(c.state, name, 4 + (int)rng_below(&r, 12), (int)rng_below(&r, 9), "");
        }
        for (int g = 0; g < 12; g++) {
            int size = 1 + (int)rng_below(&r, 4), gpus = (int)rng_below(&r, 4);
            for (int i = 0; i < size; i++) {
                char name[16], gang[8];
                (void)snprintf(name, sizeof name, "p%d-%d", g, i);
                (void)snprintf(gang, sizeof gang, "g%d", g);
                live_case_pod(c.state, &(LiveCasePod){.name = name,
                                                      .gang = size > 1 ? gang : NULL,
                                                      .min = size,
                                                      .gpus = gpus});
            }
        }
        for (int round = 0; round < 4; round++) {
            const ClusterView *v = live_case_look(&c);
            ClusterSlice       s[16][3];
            ClusterAction      a[16];
            uint32_t           n = v->n_waiting < 16 ? v->n_waiting : 16;
            for (uint32_t i = 0; i < n; i++) {
                uint32_t k = 1 + (uint32_t)rng_below(&r, 3);
                for (uint32_t x = 0; x < k; x++)
                    s[i][x] = (ClusterSlice){.server = (uint32_t)rng_below(&r, 6),
                                             .gpus = (uint32_t)rng_below(&r, 8)};
                a[i] = start(v->waiting[i], s[i], k);
            }
            assert_int_equal(kube_plan_apply(&c.plan, v, a, n), ERR_OK);
            assert_int_equal(kube_plan_own(&c.plan, false, 8), ERR_OK);
            c.now += 10 * CLUSTER_SECOND;
        }
        (void)live_case_look(&c);
        KubeNode *const *nodes;
        uint32_t         n_nodes = kube_state_nodes(c.state, &nodes);
        for (uint32_t i = 0; i < n_nodes; i++)
            for (uint32_t k = 0; k < KUBE_RESOURCES; k++)
                assert_true(kube_node_info(nodes[i])->used.of[k] <=
                            kube_node_info(nodes[i])->allocatable.of[k]);
        for (uint32_t i = 0; i < c.jobs.n_slots; i++) {
            const KubeJob *j = c.jobs.at[i];
            if (j != NULL) assert_true(j->n_bound == 0 || j->n_bound == j->n);
        }
        live_case_close(&c);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_planned),  cmocka_unit_test(test_moved_or_refused),
        cmocka_unit_test(test_priority),    cmocka_unit_test(test_rules_of_preemption),
        cmocka_unit_test(test_by_policy),   cmocka_unit_test(test_resize),
        cmocka_unit_test(test_random_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
