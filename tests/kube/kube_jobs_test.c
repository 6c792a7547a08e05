// Pods as tasks and the view of a cluster: gangs are shown whole, what others hold shrinks servers.
#include "tests/kube/live_case.h"
#include "tests/runner.h"

static void test_single_pods(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    live_case_node(c.state, "n0", 16, 4, "");
    live_case_pod(c.state, &(LiveCasePod){.name = "b", .gpus = 2, .created = 2});
    live_case_pod(c.state, &(LiveCasePod){.name = "a", .gpus = 1, .created = 1, .cpu = "2500m"});
    live_case_pod(c.state,
                  &(LiveCasePod){.name = "r", .gpus = 1, .node = "n0", .phase = "Running"});
    const ClusterView *v = live_case_look(&c);
    assert_true(c.anew && v->n_waiting == 2 && v->n_running == 1);
    const ClusterTask *a = &v->tasks[v->waiting[0]], *r = &v->tasks[v->running[0]];
    assert_true(a->job.gpus == 1 && a->job.cores_milli == 2500 && a->job.memory_mib == 1024);
    assert_true(a->job.servers == NULL && a->job.id < v->tasks[v->waiting[1]].job.id);
    assert_true(r->n_slices == 1 && r->slices[0].mask == 1 && r->slices[0].gpus == 1);
    assert_true(v->setup->gpus == 4 && v->servers[0].gpus == 3 &&
                v->servers[0].cores_milli == 15000);
    assert_true(v->servers[0].n_residents == 1 && v->servers[0].residents[0] == v->running[0]);
    (void)live_case_look(&c);
    assert_false(c.anew);
    live_case_close(&c);
}

static void test_gangs(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    live_case_node(c.state, "n0", 16, 4, "");
    live_case_node(c.state, "n1", 16, 4, "");
    live_case_pod(c.state, &(LiveCasePod){.name = "g-0", .gang = "g", .min = 2, .gpus = 2});
    const ClusterView *v = live_case_look(&c);
    assert_int_equal(v->n_waiting, 0);
    assert_int_equal(live_case_job(&c, "g")->phase, KUBE_JOB_INCOMPLETE);
    live_case_pod(c.state, &(LiveCasePod){.name = "g-1", .gang = "g", .min = 2, .gpus = 2});
    live_case_pod(c.state,
                  &(LiveCasePod){.name = "g-2", .gang = "g", .min = 2, .gpus = 2, .created = 5});
    v = live_case_look(&c);
    assert_true(v->n_waiting == 1 && v->tasks[v->waiting[0]].job.gpus == 4);
    uint32_t slot = v->waiting[0];
    live_case_pod(
        c.state,
        &(LiveCasePod){
            .name = "g-0", .gang = "g", .min = 2, .gpus = 2, .node = "n0", .phase = "Running"});
    live_case_pod(
        c.state,
        &(LiveCasePod){
            .name = "g-1", .gang = "g", .min = 2, .gpus = 2, .node = "n1", .phase = "Running"});
    v = live_case_look(&c);
    assert_int_equal(v->n_running, 1);
    assert_int_equal(v->running[0], slot);
    assert_int_equal(v->tasks[slot].n_slices, 2);
    assert_true(v->tasks[slot].job.gpus == 4 && v->servers[0].gpus == 2);
    live_case_gone(c.state, "g-1");  // what remains is what it holds
    v = live_case_look(&c);
    assert_true(v->n_running == 1 && v->tasks[slot].job.gpus == 2 && v->servers[1].gpus == 4);
    live_case_close(&c);
}

static void test_own(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    live_case_node(c.state, "n0", 4, 0, "");
    live_case_node(c.state, "n1", 4, 2, "");
    for (int i = 0; i < 3; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "w-%d", i);
        live_case_pod(c.state, &(LiveCasePod){.name = name, .gang = "w", .min = 3, .cpu = "2"});
    }
    const ClusterView *v = live_case_look(&c);
    assert_int_equal(v->n_waiting, 0);
    assert_true(live_case_job(&c, "w")->own);
    assert_int_equal(kube_plan_own(&c.plan, false, 10), ERR_OK);
    assert_int_equal(c.plan.n, 3);
    v = live_case_look(&c);  // assumed: servers are smaller, and nothing is shown
    assert_int_equal(v->n_running, 0);
    uint64_t cores = v->setup->cores_milli;
    assert_int_equal(cores, 2000);
    live_case_close(&c);
}

static void test_servers(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    live_case_node(c.state, "n0", 16, 4, "\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]");
    live_case_node(c.state, "n1", 16, 4, "");
    live_case_pod(c.state, &(LiveCasePod){.name = "a", .gpus = 1});
    live_case_pod(c.state, &(LiveCasePod){.name = "b", .gpus = 1});
    const ClusterView *v = live_case_look(&c);
    const uint64_t    *only = v->tasks[v->waiting[0]].job.servers;
    assert_true(v->n_waiting == 2 && only != NULL);
    for (uint32_t i = 0; i < v->setup->n_servers; i++)
        assert_int_equal(only[0] >> i & 1, strcmp(v->setup->servers[i].name, "n1") == 0);
    assert_ptr_equal(only, v->tasks[v->waiting[1]].job.servers);
    live_case_node(c.state, "n0", 16, 4, "");  // the taint goes: the set changes
    (void)live_case_look(&c);
    c.jobs.reason = 0;
    assert_int_equal(kube_servers_find(&c.jobs, c.state, 10), ERR_OK);
    assert_null(v->tasks[v->waiting[0]].job.servers);
    assert_true((c.jobs.reason & CLUSTER_SERVERS) != 0);
    live_case_close(&c);
}

static void test_same_name(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    live_case_node(c.state, "n0", 16, 4, "");
    live_case_pod(
        c.state,
        &(LiveCasePod){.name = "a", .uid = "1", .gpus = 1, .node = "n0", .phase = "Running"});
    assert_int_equal(live_case_look(&c)->n_running, 1);
    live_case_pod(c.state, &(LiveCasePod){.name = "a", .uid = "2", .gpus = 1});
    const ClusterView *v = live_case_look(&c);
    assert_true(v->n_running == 0 && v->n_waiting == 1 && v->servers[0].gpus == 4);
    assert_string_equal(live_case_job(&c, "a")->members[0].uid, "2");
    live_case_close(&c);
}

static void test_backoff(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    live_case_node(c.state, "n0", 16, 4, "");
    live_case_pod(c.state, &(LiveCasePod){.name = "a", .gpus = 1});
    const ClusterView *v = live_case_look(&c);
    uint64_t           id = v->tasks[v->waiting[0]].job.id;
    KubeJob           *j = live_case_job(&c, "a");
    for (uint32_t i = 0; i < 6; i++) kube_jobs_refused(&c.jobs, j, 1);
    assert_int_equal(j->backoff, 10 * CLUSTER_SECOND);
    assert_int_equal(live_case_look(&c)->n_waiting, 0);
    c.now += 10 * CLUSTER_SECOND;
    v = live_case_look(&c);
    assert_true(v->n_waiting == 1 && v->tasks[v->waiting[0]].job.id > id);
    live_case_close(&c);
}

// Servers that are too small even when empty are none of a job's.
static void test_too_large(void **state) {
    (void)state;
    LiveCase c;
    live_case_open(&c);
    live_case_node(c.state, "n0", 16, 4, "");
    live_case_node(c.state, "n1", 16, 2, "");
    live_case_pod(c.state, &(LiveCasePod){.name = "a", .gpus = 3});
    live_case_pod(c.state, &(LiveCasePod){.name = "b", .gpus = 6});
    const ClusterView *v = live_case_look(&c);
    for (uint32_t k = 0; k < v->n_waiting; k++) {
        const ClusterJob *j = &v->tasks[v->waiting[k]].job;
        assert_non_null(j->servers);
        for (uint32_t i = 0; i < v->setup->n_servers; i++)
            assert_int_equal(j->servers[0] >> i & 1, v->setup->servers[i].gpus >= j->gpus);
    }
    live_case_close(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_pods), cmocka_unit_test(test_gangs),
        cmocka_unit_test(test_own),         cmocka_unit_test(test_servers),
        cmocka_unit_test(test_same_name),   cmocka_unit_test(test_backoff),
        cmocka_unit_test(test_too_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
