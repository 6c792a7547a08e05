// Where pods fit, field by field, and what is said when they do not.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kube/kube_case.h"
#include "tests/runner.h"

static KubeCase kube;

#define ZONE(z, h) ",'labels':{'zone':'" z "','host':'" h "','kubernetes.io/os':'linux'}"

static int begin(void **state) {
    (void)state;
    kube_case_begin(&kube, NULL);
    kube_case_node(&kube, "n1", ZONE("a", "n1"), "");
    kube_case_node(&kube, "n2", ZONE("a", "n2"), "");
    kube_case_node(&kube, "n3", ZONE("b", "n3"), "");
    return 0;
}

static int end(void **state) {
    (void)state;
    kube_case_end(&kube);
    return 0;
}

static void expect(const char *spec, const char *node, KubeFitReason reason) {
    (void)kube_case_pod(&kube, "p", ",'labels':{'app':'w'}", spec);
    KubeVerdict v = kube_case_fit(&kube, "p", node);
    if (v.reason != reason)
        fail_msg("%s on %s: %d (%s), not %d", spec, node, v.reason,
                 v.detail != NULL ? v.detail : "", reason);
}

static void message(const char *want) {
    char        text[512];
    KubeVerdict most;
    KubePod    *p = kube_state_pod(kube.state, "default", "p");
    size_t      len = kube_fit_message(kube.state, p, text, sizeof text, &most);
    assert_int_equal(len, strlen(text));
    assert_string_equal(text, want);
}

#define CPU(n) ",'containers':[{'name':'c','resources':{'requests':{'cpu':'" n "'}}}]"
#define GPU(n) ",'containers':[{'name':'c','resources':{'requests':{'nvidia.com/gpu':'" n "'}}}]"

static void resources(void **state) {
    (void)state;
    KubeVerdict why;
    (void)kube_case_bound(&kube, "a", "n1", "", CPU("3"));
    expect(CPU("1"), "n1", FIT_OK);
    expect(CPU("1001m"), "n1", FIT_INSUFFICIENT);
    KubePod  *p = kube_state_pod(kube.state, "default", "p");
    KubeNode *n = kube_state_node(kube.state, "n1");
    assert_false(kube_fit(kube.state, p, n, NULL, &why));
    assert_true(why.resource == KUBE_CPU && why.short_of == 1);
    assert_true(kube_fit_ever(kube.state, p, n, &why));
    KubeAmounts less = {.of = {[KUBE_CPU] = 1000}};
    assert_true(kube_fit(kube.state, p, n, &less, &why));
    expect(",'containers':[{'name':'c','resources':{'requests':{'example.com/fpga':'1'}}}]", "n2",
           FIT_INSUFFICIENT);
    message("0/3 nodes are available: 3 Insufficient example.com/fpga.");
    expect(CPU("5"), "n2", FIT_INSUFFICIENT);
    assert_false(kube_fit_ever(kube.state, kube_state_pod(kube.state, "default", "p"), n, &why));
    assert_string_equal(kube_state_resource(kube.state, KUBE_EXTENDED), "example.com/fpga");
}

static void too_many_pods(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "a%d", i);
        (void)kube_case_bound(&kube, name, "n1", "", "");
    }
    expect("", "n1", FIT_PODS);
    expect("", "n2", FIT_OK);
}

static void itself(void **state) {
    (void)state;
    KubePod *p = kube_case_pod(&kube, "p", ",'labels':{'app':'w'}",
                               CPU("3") ",'hostNetwork':true,'affinity':{'podAntiAffinity':{"
                                        "'requiredDuringSchedulingIgnoredDuringExecution':[{"
                                        "'labelSelector':{'matchLabels':{'app':'w'}},"
                                        "'topologyKey':'host'}]}}");
    kube_state_assume(kube.state, p, kube_state_node(kube.state, "n1"));
    assert_int_equal(kube_case_fit(&kube, "p", "n1").reason, FIT_OK);
    kube_case_node(&kube, "n1", ZONE("a", "n1"), ",'taints':[{'key':'k','effect':'NoSchedule'}]");
    assert_int_equal(kube_case_fit(&kube, "p", "n1").reason, FIT_TAINT);
}

static void taints(void **state) {
    (void)state;
    kube_case_node(&kube, "n1", "", ",'taints':[{'key':'k','value':'v','effect':'NoSchedule'}]");
    kube_case_node(&kube, "n2", "", ",'taints':[{'key':'k','effect':'NoExecute'}]");
    kube_case_node(&kube, "n3", "", ",'taints':[{'key':'k','effect':'PreferNoSchedule'}]");
    expect("", "n1", FIT_TAINT);
    expect("", "n2", FIT_TAINT);
    expect("", "n3", FIT_OK);
    message("1/3 nodes are available: 2 node(s) had untolerated taint(s).");
    expect(",'tolerations':[{'operator':'Exists'}]", "n1", FIT_OK);
    expect(",'tolerations':[{'key':'k','operator':'Exists'}]", "n2", FIT_OK);
    expect(",'tolerations':[{'key':'k','value':'v'}]", "n1", FIT_OK);
    expect(",'tolerations':[{'key':'k','value':'w'}]", "n1", FIT_TAINT);
    expect(",'tolerations':[{'key':'k','operator':'Exists','effect':'NoExecute'}]", "n1",
           FIT_TAINT);
    expect(",'tolerations':[{'key':'k','operator':'Gt','value':'1'}]", "n1", FIT_UNSUPPORTED);
    kube_case_node(&kube, "n3", "", ",'unschedulable':true");
    expect("", "n3", FIT_UNSCHEDULABLE);
    expect(",'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':'Exists'}]", "n3",
           FIT_OK);
}

#define NODE_AFFINITY(terms)                                                                       \
    ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"               \
    "{'nodeSelectorTerms':[" terms "]}}}"

static void selectors(void **state) {
    (void)state;
    expect(",'nodeSelector':{'zone':'b'}", "n3", FIT_OK);
    expect(",'nodeSelector':{'zone':'b'}", "n1", FIT_SELECTOR);
    message("1/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
    const char *b =
        NODE_AFFINITY("{'matchExpressions':[{'key':'zone','operator':'NotIn','values':['a']}]}");
    expect(b, "n3", FIT_OK);
    expect(b, "n1", FIT_SELECTOR);
    expect(NODE_AFFINITY("{}"), "n1", FIT_SELECTOR);
    const char *by_name =
        NODE_AFFINITY("{'matchFields':[{'key':'metadata.name','operator':'In','values':['n2']}]}");
    expect(by_name, "n2", FIT_OK);
    expect(by_name, "n1", FIT_SELECTOR);
    expect(",'os':{'name':'windows'}", "n1", FIT_SELECTOR);
    expect(",'os':{'name':'linux'}", "n1", FIT_OK);
}

#define PORT(ip, port, protocol)                                                                   \
    ",'containers':[{'name':'c','ports':[{'containerPort':80,'hostPort':" port ",'hostIP':'" ip    \
    "','protocol':'" protocol "'}]}]"

static void ports(void **state) {
    (void)state;
    (void)kube_case_bound(&kube, "a", "n1", "", PORT("10.0.0.1", "8080", "TCP"));
    expect(PORT("", "8080", "TCP"), "n1", FIT_PORTS);
    expect(PORT("10.0.0.2", "8080", "TCP"), "n1", FIT_OK);
    expect(PORT("", "8080", "UDP"), "n1", FIT_OK);
    expect(PORT("", "8081", "TCP"), "n1", FIT_OK);
    expect(PORT("0.0.0.0", "8080", "TCP"), "n2", FIT_OK);
}

#define TERM(app, key) "{'labelSelector':{'matchLabels':{'app':'" app "'}},'topologyKey':'" key "'}"
#define NEAR(term)                                                                                 \
    ",'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" term "]}}"
#define APART(term)                                                                                \
    ",'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" term "]}" \
    "}"

static void affinity(void **state) {
    (void)state;
    expect(NEAR(TERM("x", "zone")), "n1", FIT_AFFINITY);
    expect(NEAR(TERM("w", "zone")), "n1", FIT_OK);  // the first of its kind
    expect(NEAR(TERM("w", "rack")), "n1", FIT_AFFINITY);
    (void)kube_case_bound(&kube, "a", "n1", ",'labels':{'app':'x'}", "");
    expect(NEAR(TERM("x", "zone")), "n2", FIT_OK);
    expect(NEAR(TERM("x", "zone")), "n3", FIT_AFFINITY);
    expect(NEAR(TERM("x", "host")), "n2", FIT_AFFINITY);
    expect(APART(TERM("x", "zone")), "n2", FIT_ANTI_AFFINITY);
    expect(APART(TERM("x", "host")), "n2", FIT_OK);
    (void)kube_case_bound(&kube, "b", "n3", ",'labels':{'app':'y'}", APART(TERM("w", "zone")));
    expect("", "n3", FIT_EXISTING_ANTI_AFFINITY);
    expect("", "n1", FIT_OK);
    message("2/3 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.");
}

static void namespaces(void **state) {
    (void)state;
    kube_case_put(&kube, KUBE_PODS_KIND,
                  "{'metadata':{'name':'a','namespace':'other','uid':'o','labels':{'app':'x'}},"
                  "'spec':{'nodeName':'n1','containers':[]},'status':{'phase':'Running'}}");
    const char *named = "{'labelSelector':{},'namespaces':['other'],'topologyKey':'host'}";
    const char *by_label = "{'labelSelector':{},'namespaceSelector':{'matchLabels':{'t':'1'}},"
                           "'topologyKey':'host'}";
    const char *all = "{'labelSelector':{},'namespaceSelector':{},'topologyKey':'host'}";
    const char *own = "{'labelSelector':{},'topologyKey':'host'}";
    char        spec[512];
    const struct {
        const char   *term;
        KubeFitReason before, after;  // the namespace gets its label
    } rows[] = {{named, FIT_ANTI_AFFINITY, FIT_ANTI_AFFINITY},
                {by_label, FIT_OK, FIT_ANTI_AFFINITY},
                {all, FIT_ANTI_AFFINITY, FIT_ANTI_AFFINITY},
                {own, FIT_OK, FIT_OK}};
    for (int after = 0; after < 2; after++) {
        for (size_t i = 0; i < 4; i++) {
            (void)snprintf(spec, sizeof spec,
                           ",'affinity':{'podAntiAffinity':{"
                           "'requiredDuringSchedulingIgnoredDuringExecution':[%s]}}",
                           rows[i].term);
            expect(spec, "n1", after ? rows[i].after : rows[i].before);
        }
        kube_case_put(&kube, KUBE_NAMESPACES, "{'metadata':{'name':'other','labels':{'t':'1'}}}");
    }
}

#define SPREAD(more)                                                                               \
    ",'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':"         \
    "'DoNotSchedule','labelSelector':{'matchLabels':{'app':'w'}}" more "}]"

static void spread(void **state) {
    (void)state;
    (void)kube_case_bound(&kube, "a", "n1", ",'labels':{'app':'w'}", "");
    expect(SPREAD(""), "n2", FIT_SPREAD);
    expect(SPREAD(""), "n3", FIT_OK);
    expect(SPREAD(",'minDomains':3"), "n3", FIT_OK);
    (void)kube_case_bound(&kube, "b", "n3", ",'labels':{'app':'w'}", "");
    expect(SPREAD(""), "n2", FIT_OK);
    expect(SPREAD(",'minDomains':3"), "n3", FIT_SPREAD);
    (void)kube_case_bound(&kube, "c", "n2", ",'labels':{'app':'w'}", "");
    expect(SPREAD(""), "n1", FIT_SPREAD);
    expect(SPREAD(",'matchLabelKeys':['none']"), "n1", FIT_SPREAD);
    expect(SPREAD("") ",'nodeSelector':{'zone':'a'}", "n1", FIT_OK);  // b is not its domain
    expect(SPREAD(",'nodeAffinityPolicy':'Ignore'") ",'nodeSelector':{'zone':'a'}", "n1",
           FIT_SPREAD);
    kube_case_node(&kube, "n3", ZONE("b", "n3"), ",'taints':[{'key':'k','effect':'NoSchedule'}]");
    expect(SPREAD(",'nodeTaintsPolicy':'Honor'"), "n1", FIT_OK);
    kube_case_node(&kube, "n2", "", "");
    expect(SPREAD(""), "n2", FIT_SPREAD);  // no such label
}

#define CLAIM ",'volumes':[{'name':'d','persistentVolumeClaim':{'claimName':'c'}}]"

static void put_claim(const char *meta, const char *spec) {
    kube_case_put(&kube, KUBE_CLAIMS,
                  "{'metadata':{'name':'c','namespace':'default'%s},'spec':{'accessModes':["
                  "'ReadWriteOncePod'],'storageClassName':'k'%s}}",
                  meta, spec);
}

static void claims(void **state) {
    (void)state;
    expect(CLAIM, "n1", FIT_VOLUME_MISSING);
    message("0/3 nodes are available: persistentvolumeclaim \"c\" not found.");
    put_claim("", "");
    expect(CLAIM, "n1", FIT_VOLUME_UNBOUND);
    message("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims (claim c).");
    kube_case_put(&kube, KUBE_STORAGE_CLASSES,
                  "{'metadata':{'name':'k'},'volumeBindingMode':'WaitForFirstConsumer'}");
    expect(CLAIM, "n1", FIT_UNSUPPORTED);
    put_claim(",'annotations':{'volume.kubernetes.io/selected-node':'n1'}", "");
    expect(CLAIM, "n1", FIT_OK);
    expect(CLAIM, "n2", FIT_VOLUME_NODE);
    put_claim(",'annotations':{'pv.kubernetes.io/bind-completed':'yes'}", ",'volumeName':'v'");
    expect(CLAIM, "n1", FIT_VOLUME_MISSING);
    kube_case_put(&kube, KUBE_VOLUMES,
                  "{'metadata':{'name':'v'},'spec':{'csi':{'driver':'d','volumeHandle':'h'},"
                  "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
                  "'zone','operator':'In','values':['a']}]}]}}}}");
    expect(CLAIM, "n1", FIT_OK);
    expect(CLAIM, "n3", FIT_VOLUME_NODE);
    kube_case_put(&kube, KUBE_CSI_NODES,
                  "{'metadata':{'name':'n1'},'spec':{'drivers':[{'name':'d','allocatable':{'count':"
                  "0}}]}}");
    expect(CLAIM, "n1", FIT_VOLUME_LIMIT);
    expect(CLAIM, "n2", FIT_OK);
    (void)kube_case_bound(&kube, "a", "n2", "", CLAIM);
    expect(CLAIM, "n2", FIT_VOLUME_EXCLUSIVE);
    expect(",'volumes':[{'name':'e','ephemeral':{'volumeClaimTemplate':{}}}]", "n1",
           FIT_VOLUME_MISSING);
}

static void zones_of_volumes(void **state) {
    (void)state;
    put_claim(",'annotations':{'pv.kubernetes.io/bind-completed':'yes'}", ",'volumeName':'v'");
    kube_case_put(&kube, KUBE_VOLUMES,
                  "{'metadata':{'name':'v','labels':{'topology.kubernetes.io/zone':'x__y'}},"
                  "'spec':{}}");
    kube_case_node(&kube, "n2", ",'labels':{'topology.kubernetes.io/zone':'y'}", "");
    kube_case_node(&kube, "n3", ",'labels':{'failure-domain.beta.kubernetes.io/zone':'z'}", "");
    expect(CLAIM, "n1", FIT_OK);  // a node without zones
    expect(CLAIM, "n2", FIT_OK);
    expect(CLAIM, "n3", FIT_VOLUME_NODE);
}

static void devices(void **state) {
    (void)state;
    const char *spec = ",'resourceClaims':[{'name':'g','resourceClaimName':'rc'}]";
    expect(spec, "n1", FIT_UNSUPPORTED);
    kube_case_put(&kube, KUBE_RESOURCE_CLAIMS,
                  "{'metadata':{'name':'rc','namespace':'default'},'status':{'allocation':{"
                  "'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name',"
                  "'operator':'In','values':['n1']}]}]}}}}");
    expect(spec, "n1", FIT_OK);
    expect(spec, "n2", FIT_SELECTOR);
}

static void standing(void **state) {
    (void)state;
    expect(",'schedulingGates':[{'name':'g'}]", "n1", FIT_GATED);
    (void)kube_case_pod(&kube, "q", ",'deletionTimestamp':'2026-01-02T03:04:05Z'", "");
    assert_int_equal(kube_case_fit(&kube, "q", "n1").reason, FIT_TERMINATING);
}

static void several_reasons(void **state) {
    (void)state;
    kube_case_node(&kube, "n3", ZONE("b", "n3"), ",'taints':[{'key':'k','effect':'NoSchedule'}]");
    (void)kube_case_bound(&kube, "a", "n1", "", GPU("2"));
    (void)kube_case_bound(&kube, "b", "n2", "", GPU("1"));
    expect(",'containers':[{'name':'c','resources':{'requests':{'nvidia.com/gpu':'2','cpu':'5'}}}]",
           "n1", FIT_INSUFFICIENT);
    message("0/3 nodes are available: 2 Insufficient cpu, 2 Insufficient nvidia.com/gpu, "
            "1 node(s) had untolerated taint(s).");
    char        text[20];
    KubeVerdict most;
    KubePod    *p = kube_state_pod(kube.state, "default", "p");
    assert_int_equal(kube_fit_message(kube.state, p, text, sizeof text, &most), 19);
    assert_string_equal(text, "0/3 nodes are avail");
    assert_true(most.reason == FIT_INSUFFICIENT && most.resource == KUBE_CPU);
}

static int64_t score(const char *node) {
    return kube_fit_score(kube.state, kube_state_pod(kube.state, "default", "p"),
                          kube_state_node(kube.state, node));
}

static void scores(void **state) {
    (void)state;
    expect(",'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{"
           "'weight':7,'preference':{'matchExpressions':[{'key':'zone','operator':'In','values':"
           "['b']}]}}]}}",
           "n1", FIT_OK);
    assert_true(score("n1") == 0 && score("n3") == 7);
    (void)kube_case_bound(&kube, "a", "n1", ",'labels':{'app':'w'}", "");
    const char *preferred = ",'affinity':{'podAntiAffinity':{"
                            "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':5,"
                            "'podAffinityTerm':" TERM("w", "zone") "}]}}";
    expect(preferred, "n1", FIT_OK);
    assert_true(score("n2") == -5 && score("n3") == 0);
    expect(",'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'zone','whenUnsatisfiable':"
           "'ScheduleAnyway','labelSelector':{'matchLabels':{'app':'w'}}}]",
           "n1", FIT_OK);
    assert_true(score("n1") < score("n3"));
    kube_case_node(&kube, "n3", "", ",'taints':[{'key':'k','effect':'PreferNoSchedule'}]");
    expect("", "n3", FIT_OK);
    assert_true(score("n3") < score("n1"));
}

TEST_MAIN() {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {TEST(resources), TEST(too_many_pods),    TEST(itself),
                                       TEST(taints),    TEST(selectors),        TEST(ports),
                                       TEST(affinity),  TEST(namespaces),       TEST(spread),
                                       TEST(claims),    TEST(zones_of_volumes), TEST(devices),
                                       TEST(standing),  TEST(several_reasons),  TEST(scores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
