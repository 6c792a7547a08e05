// The account of a cluster: what counts where, relists, assumed pods, memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kube/kube_state_int.h"
#include "tests/kube/kube_case.h"
#include "tests/runner.h"

static KubeCase kube;

static int begin(void **state) {
    (void)state;
    kube_case_begin(&kube,
                    &(KubeStateOptions){.node_selector = "!skip", .namespaces = "default, b"});
    kube_case_node(&kube, "n1", "", "");
    kube_case_node(&kube, "n2", "", "");
    return 0;
}

static int end(void **state) {
    (void)state;
    kube_case_end(&kube);
    return 0;
}

#define CPU(n) ",'containers':[{'name':'c','resources':{'requests':{'cpu':'" n "'}}}]"

static int64_t used(const char *node) {
    return kube_node_info(kube_state_node(kube.state, node))->used.of[KUBE_CPU];
}

static KubePod *find(const char *name) { return kube_state_pod(kube.state, "default", name); }

static void counted(void **state) {
    (void)state;
    (void)kube_case_bound(&kube, "a", "n1", "", CPU("1"));
    (void)kube_case_bound(&kube, "b", "n1", ",'deletionTimestamp':'2026-01-02T03:04:05Z'",
                          CPU("2"));
    (void)kube_case_pod(&kube, "c", "", CPU("3"));
    assert_true(used("n1") == 3000 && used("n2") == 0);
    kube_case_put(&kube, KUBE_PODS_KIND,
                  "{'metadata':{'name':'a','namespace':'default','uid':'a-uid','resourceVersion':"
                  "'x'},'spec':{'nodeName':'n1'" CPU("1") "},'status':{'phase':'Succeeded'}}");
    assert_true(used("n1") == 2000);
    kube_case_gone(&kube, KUBE_PODS_KIND,
                   "{'metadata':{'name':'b','namespace':'default','uid':'other'}}");
    assert_true(used("n1") == 2000);
    kube_case_gone(&kube, KUBE_PODS_KIND,
                   "{'metadata':{'name':'b','namespace':'default','uid':'b-uid'}}");
    assert_true(used("n1") == 0 && find("b") == NULL);
}

static void before_its_node(void **state) {
    (void)state;
    (void)kube_case_bound(&kube, "a", "n3", "", CPU("1"));
    assert_null(kube_state_node(kube.state, "n3"));
    kube_case_node(&kube, "n3", "", "");
    assert_true(used("n3") == 1000);
    kube_case_gone(&kube, KUBE_NODES, "{'metadata':{'name':'n3','uid':'n3-uid'}}");
    assert_null(kube_state_node(kube.state, "n3"));
    kube_case_node(&kube, "n3", "", "");
    assert_true(used("n3") == 1000);
    kube_case_node(&kube, "n4", ",'labels':{'skip':''}", "");
    assert_null(kube_state_node(kube.state, "n4"));
    KubeNode *const *nodes;
    assert_int_equal(kube_state_nodes(kube.state, &nodes), 3);
}

static void assumed(void **state) {
    (void)state;
    KubeNode *n1 = kube_state_node(kube.state, "n1"), *n2 = kube_state_node(kube.state, "n2");
    kube_state_assume(kube.state, kube_case_pod(&kube, "a", "", CPU("1")), n1);
    assert_true(used("n1") == 1000 && kube_state_assumed(kube.state, find("a")) == n1);
    (void)kube_case_pod(&kube, "a", ",'labels':{'x':'y'}", CPU("2"));  // still pending
    assert_true(used("n1") == 2000 && kube_state_assumed(kube.state, find("a")) == n1);
    (void)kube_case_bound(&kube, "a", "n2", "", CPU("2"));  // the truth counts
    assert_true(used("n1") == 0 && used("n2") == 2000);
    assert_null(kube_state_assumed(kube.state, find("a")));
    (void)kube_case_pod(&kube, "a", "", CPU("2"));  // older: nodeName never goes away
    assert_true(used("n2") == 2000);
    kube_state_assume(kube.state, find("a"), n1);  // bound: no assumption
    assert_true(used("n1") == 0);
    kube_state_assume(kube.state, kube_case_pod(&kube, "b", "", CPU("1")), n1);
    kube_state_forget(kube.state, find("b"));
    kube_state_forget(kube.state, find("b"));
    kube_state_forget(kube.state, find("a"));
    assert_true(used("n1") == 0 && used("n2") == 2000);
    kube_state_assume(kube.state, find("b"), n1);
    kube_case_put(&kube, KUBE_PODS_KIND,
                  "{'metadata':{'name':'b','namespace':'default','uid':'again','resourceVersion':"
                  "'z','creationTimestamp':'2026-01-02T03:04:06Z'},'spec':{}}");
    assert_true(used("n1") == 0 && kube_state_assumed(kube.state, find("b")) == NULL);
    (void)n2;
}

static void node_lost_under_an_assumption(void **state) {
    (void)state;
    kube_state_assume(kube.state, kube_case_pod(&kube, "a", "", CPU("1")),
                      kube_state_node(kube.state, "n1"));
    kube_case_gone(&kube, KUBE_NODES, "{'metadata':{'name':'n1','uid':'n1-uid'}}");
    const KubeNode *n = kube_state_assumed(kube.state, find("a"));
    KubeVerdict     why;
    assert_string_equal(kube_node_info(n)->name, "n1");
    assert_false(kube_fit(kube.state, find("a"), n, NULL, &why));
    assert_int_equal(why.reason, FIT_UNSUPPORTED);
    kube_case_put(
        &kube, KUBE_NODES,
        "{'metadata':{'name':'n1','uid':'new'},'status':{'allocatable':{'cpu':'1500m'}}}");
    assert_true(used("n1") == 1000 && kube_state_assumed(kube.state, find("a")) != NULL);
    assert_true(kube_node_info(kube_state_node(kube.state, "n1"))->allocatable.of[KUBE_CPU] ==
                1500);
    kube_state_forget(kube.state, find("a"));
}

static void relist(void **state) {
    (void)state;
    (void)kube_case_bound(&kube, "a", "n1", "", CPU("1"));
    (void)kube_case_bound(&kube, "b", "n1", "", CPU("1"));
    kube_state_assume(kube.state, kube_case_pod(&kube, "c", "", CPU("1")),
                      kube_state_node(kube.state, "n2"));
    kube_state_begin(kube.state, KUBE_PODS_KIND);
    (void)kube_case_bound(&kube, "a", "n1", "", CPU("1"));
    kube_state_begin(kube.state, KUBE_PODS_KIND);  // the list expired between pages
    (void)kube_case_bound(&kube, "b", "n1", "", CPU("1"));
    (void)kube_case_pod(&kube, "c", "", CPU("1"));
    kube_state_end(kube.state, KUBE_PODS_KIND);
    assert_true(find("a") == NULL && used("n1") == 1000 && used("n2") == 1000);
    kube_state_begin(kube.state, KUBE_PODS_KIND);
    kube_state_end(kube.state, KUBE_PODS_KIND);
    assert_true(used("n1") == 0 && used("n2") == 0);
    kube_state_begin(kube.state, KUBE_NODES);
    kube_case_node(&kube, "n2", "", "");
    kube_state_end(kube.state, KUBE_NODES);
    assert_true(kube_state_node(kube.state, "n1") == NULL);
    assert_true(kube_state_node(kube.state, "n2") != NULL);
}

static void versions(void **state) {
    (void)state;
    uint64_t v = kube_state_version(kube.state);
    kube_case_node(&kube, "n1", ",'resourceVersion':'77'", "");  // a heartbeat
    (void)kube_case_pod(&kube, "a", "", CPU("1"));
    assert_true(kube_state_version(kube.state) == v);
    kube_case_node(&kube, "n1", "", ",'unschedulable':true");
    assert_true(kube_state_version(kube.state) != v);
    v = kube_state_version(kube.state);
    kube_state_assume(kube.state, find("a"), kube_state_node(kube.state, "n1"));
    assert_true(kube_state_version(kube.state) == v);
    kube_state_forget(kube.state, find("a"));
    assert_true(kube_state_version(kube.state) != v);
}

static void budgets(void **state) {
    (void)state;
    KubePod *p = kube_case_pod(&kube, "a", ",'labels':{'app':'x'}", "");
    assert_true(kube_state_disruptions(kube.state, p) == UINT32_MAX);
    kube_case_put(
        &kube, KUBE_DISRUPTION_BUDGETS,
        "{'metadata':{'name':'b','namespace':'default'},'spec':{'selector':{'matchLabels':"
        "{'app':'x'}}},'status':{'disruptionsAllowed':2}}");
    assert_true(kube_state_disruptions(kube.state, p) == 2);
}

static void put_space(int version) {
    kube_case_put(&kube, KUBE_NAMESPACES,
                  "{'metadata':{'name':'b','resourceVersion':'%d','labels':{'a':'b'}}}", version);
}

static void unchanged_objects(void **state) {
    (void)state;
    put_space(1);
    uint64_t v = kube_state_version(kube.state);
    kube_state_begin(kube.state, KUBE_NAMESPACES);
    put_space(1);
    kube_state_end(kube.state, KUBE_NAMESPACES);
    assert_true(kube_state_version(kube.state) == v && kube.state->tables[KUBE_NAMESPACES].n == 1);
    put_space(2);
    assert_true(kube_state_version(kube.state) != v);
}

// Pods may name resources that do not exist; what nodes have is counted nevertheless.
static void many_resources(void **state) {
    (void)state;
    char name[16], spec[160];
    for (int i = 0; i < KUBE_RESOURCES; i++) {
        (void)snprintf(name, sizeof name, "a%d", i);
        (void)snprintf(spec, sizeof spec,
                       ",'containers':[{'name':'c','resources':{'requests':{'x.io/r%d':'1'}}}]", i);
        (void)kube_case_pod(&kube, name, "", spec);
    }
    assert_null(kube_pod_info(find("a0"))->unsupported);
    assert_non_null(strstr(kube_pod_info(find(name))->unsupported, "x.io/r31: more than 24 kinds"));
    kube_case_put(&kube, KUBE_NODES,
                  "{'metadata':{'name':'n1','uid':'n1-uid'},'status':{'allocatable':{'cpu':'1',"
                  "'pods':'9','y.io/real':'3'}}}");
    (void)kube_case_pod(&kube, "b", "",
                        ",'containers':[{'name':'c','resources':{'requests':{'y.io/real':'4'}}}]");
    KubeVerdict why = kube_case_fit(&kube, "b", "n1");
    assert_true(why.reason == FIT_INSUFFICIENT && why.short_of == 1);
    assert_string_equal(why.detail, "y.io/real");
}

// Sums over all pods, against the account.
static void recount(KubeState *s) {
    KubeNode *const *nodes;
    KubePod *const  *pods;
    uint32_t         n = kube_state_nodes(s, &nodes), n_pods = kube_state_pods(s, &pods);
    for (uint32_t i = 0; i < n; i++) {
        int64_t sum = 0, count = 0;
        for (uint32_t k = 0; k < n_pods; k++) {
            const KubePodInfo *p = kube_pod_info(pods[k]);
            const KubeNode    *held = kube_state_assumed(s, pods[k]);
            bool               over = p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
            bool               bound = p->node != NULL && strcmp(p->node, nodes[i]->info.name) == 0;
            if (over || (!bound && held != nodes[i])) continue;
            sum += p->requests.of[KUBE_CPU];
            count++;
        }
        assert_int_equal(nodes[i]->info.used.of[KUBE_CPU], sum);
        assert_int_equal(nodes[i]->info.used.of[KUBE_PODS], count);
    }
}

static void random_pod(Rng *r, char *text, size_t room, unsigned at) {
    unsigned    n = (unsigned)rng_below(r, 40), node = (unsigned)rng_below(r, 8);
    const char *phases[] = {"Pending", "Running", "Running", "Succeeded"};
    char        where[32] = "";
    if (node > 3) (void)snprintf(where, sizeof where, ",'nodeName':'n%u'", node - 3);
    (void)snprintf(text, room,
                   "{'metadata':{'name':'p%u','namespace':'default','uid':'u%u','resourceVersion':"
                   "'%u','labels':{'l%u':'v%u'}},'spec':{'schedulerName':'cotenant'%s,"
                   "'containers':[{'name':'c','resources':{'requests':{'cpu':'%um'}}}]},"
                   "'status':{'phase':'%s'}}",
                   n, n + 100 * (unsigned)rng_below(r, 3), at, at % 977, at, where,
                   (unsigned)rng_below(r, 3000), phases[rng_below(r, 4)]);
}

// Bounded: what was put and went leaves nothing behind.
static void churn(void **state) {
    (void)state;
    Rng  r = {7};
    char text[1024];
    for (unsigned i = 0; i < 30000; i++) {
        unsigned name = (unsigned)rng_below(&r, 40), n = 1 + (unsigned)rng_below(&r, 4);
        char     node[16], pod[16];
        (void)snprintf(node, sizeof node, "n%u", n);
        (void)snprintf(pod, sizeof pod, "p%u", name);
        KubeNode *on = kube_state_node(kube.state, node);
        switch (rng_below(&r, 10)) {
        case 0: kube_case_node(&kube, node, "", ""); break;
        case 1:
            if (i % 20 == 1) kube_case_gone(&kube, KUBE_NODES, "{'metadata':{'name':'%s'}}", node);
            break;
        case 2:
            if (find(pod) != NULL && on != NULL) kube_state_assume(kube.state, find(pod), on);
            break;
        case 3:
            if (find(pod) != NULL) kube_state_forget(kube.state, find(pod));
            break;
        case 4: kube_case_gone(&kube, KUBE_PODS_KIND, "{'metadata':{'name':'%s'}}", pod); break;
        default:
            random_pod(&r, text, sizeof text, i);
            kube_case_put(&kube, KUBE_PODS_KIND, "%s", text);
        }
        if (i % 64 == 0) recount(kube.state);
    }
    assert_true(kube.state->words.n < 400);
    kube_state_begin(kube.state, KUBE_PODS_KIND);
    kube_state_end(kube.state, KUBE_PODS_KIND);
    kube_state_begin(kube.state, KUBE_NODES);
    kube_state_end(kube.state, KUBE_NODES);
    assert_true(kube.state->tables[KUBE_NODES].n == 0 && kube.state->words.n < 20);
}

TEST_MAIN() {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {TEST(counted),        TEST(before_its_node),
                                       TEST(assumed),        TEST(node_lost_under_an_assumption),
                                       TEST(relist),         TEST(versions),
                                       TEST(budgets),        TEST(unchanged_objects),
                                       TEST(many_resources), TEST(churn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
