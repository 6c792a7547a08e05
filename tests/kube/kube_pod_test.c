// Pods as the API server writes them: what is read of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/kube/kube_case.h"
#include "tests/runner.h"

static KubeCase kube;

static int begin(void **state) {
    (void)state;
    kube_case_begin(&kube, &(KubeStateOptions){.tenant_label = "team"});
    return 0;
}

static int end(void **state) {
    (void)state;
    kube_case_end(&kube);
    return 0;
}

#define GIB (INT64_C(1) << 30)

static const KubePodInfo *pod(const char *name, const char *meta, const char *spec) {
    return kube_pod_info(kube_case_pod(&kube, name, meta, spec));
}

static void whole(void **state) {
    (void)state;
    kube_case_put(
        &kube, KUBE_PODS_KIND,
        "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'train-0','namespace':'team-a',"
        "'uid':'6f1c','resourceVersion':'1042','creationTimestamp':'2026-01-02T03:04:05Z',"
        "'labels':{'team':'vision'},'annotations':{'cotenant.io/model':'resnet50'},"
        "'ownerReferences':[{'kind':'DaemonSet','name':'d','uid':'9'}],'managedFields':[]},"
        "'spec':{'volumes':[{'name':'t','projected':{'sources':[]}}],'containers':[{'name':'c',"
        "'image':'x','resources':{'limits':{'nvidia.com/gpu':'2'},'requests':{'cpu':'1500m',"
        "'memory':'2Gi','ephemeral-storage':'1G','nvidia.com/gpu':'2'}}}],"
        "'restartPolicy':'Never','nodeName':'n1','schedulerName':'cotenant','priority':1000,"
        "'preemptionPolicy':'Never','dnsPolicy':'ClusterFirst','securityContext':{},"
        "'enableServiceLinks':true},'status':{'phase':'Running','qosClass':'Burstable'}}");
    const KubePodInfo *i = kube_pod_info(kube_state_pod(kube.state, "team-a", "train-0"));
    assert_string_equal(i->uid, "6f1c");
    assert_string_equal(i->version, "1042");
    assert_string_equal(i->node, "n1");
    assert_string_equal(i->tenant, "vision");
    assert_string_equal(i->model, "resnet50");
    assert_null(i->unsupported);
    assert_true(i->phase == POD_RUNNING && i->ours && i->daemon && !i->may_preempt && !i->gated);
    assert_true(i->requests.of[KUBE_CPU] == 1500 && i->requests.of[KUBE_MEMORY] == 2 * GIB);
    assert_true(i->requests.of[KUBE_EPHEMERAL] == 1000000000 && i->requests.of[KUBE_GPU] == 2);
    assert_true(i->requests.of[KUBE_PODS] == 1 && i->priority == 1000 && i->gpu_milli == 1000);
    assert_true(i->created == INT64_C(1767323045) * 1000000000);
}

static void check_requests(const char *spec, int64_t cpu, int64_t memory) {
    const KubePodInfo *i = pod("p", "", spec);
    assert_null(i->unsupported);
    assert_int_equal(i->requests.of[KUBE_CPU], cpu);
    assert_int_equal(i->requests.of[KUBE_MEMORY], memory);
}

#define NEEDS(name, cpu, memory)                                                                   \
    "{'name':'" name "','resources':{'requests':{'cpu':'" cpu "','memory':'" memory "'}}}"
#define STAYS(name, cpu, memory)                                                                   \
    "{'name':'" name "','restartPolicy':'Always','resources':{'requests':{'cpu':'" cpu             \
    "','memory':'" memory "'}}}"

static void effective(void **state) {
    (void)state;
    const char *two = ",'containers':[" NEEDS("a", "1", "1Gi") "," NEEDS("b", "500m", "1Gi") "]";
    char        spec[2048];
    check_requests(two, 1500, 2 * GIB);
    (void)snprintf(spec, sizeof spec, "%s,'initContainers':[" NEEDS("i", "4", "1Gi") "]", two);
    check_requests(spec, 4000, 2 * GIB);
    (void)snprintf(spec, sizeof spec, "%s,'initContainers':[" STAYS("s", "1", "1Gi") "]", two);
    check_requests(spec, 2500, 3 * GIB);
    // A step after a sidecar runs beside it; one before it runs alone.
    (void)snprintf(spec, sizeof spec,
                   "%s,'initContainers':[" NEEDS("i", "2", "5Gi") "," STAYS(
                       "s", "1", "1Gi") "," NEEDS("k", "2", "1Gi") "]",
                   two);
    check_requests(spec, 3000, 5 * GIB);
    (void)snprintf(spec, sizeof spec, "%s,'overhead':{'cpu':'250m','memory':'1Gi'}", two);
    check_requests(spec, 1750, 3 * GIB);
    (void)snprintf(spec, sizeof spec,
                   "%s,'resources':{'requests':{'cpu':'3'}},'overhead':{'cpu':'1'}", two);
    check_requests(spec, 4000, 2 * GIB);
    check_requests("", 0, 0);
}

static void resize(void **state) {
    (void)state;
    KubePod *p;
    kube_case_put(
        &kube, KUBE_PODS_KIND,
        "{'metadata':{'name':'r','namespace':'default','uid':'r'},'spec':{'nodeName':'n1',"
        "'containers':[" NEEDS("c", "4", "1Gi") "]},'status':{'containerStatuses':["
                                                "{'name':'c','allocatedResources':{'cpu':'2'}}]}}");
    p = kube_state_pod(kube.state, "default", "r");
    assert_true(kube_pod_info(p)->requests.of[KUBE_CPU] == 4000);
    kube_case_put(
        &kube, KUBE_PODS_KIND,
        "{'metadata':{'name':'r','namespace':'default','uid':'r'},'spec':{'nodeName':'n1',"
        "'containers':[" NEEDS("c", "4", "1Gi") "]},'status':{'conditions':[{'type':"
                                                "'PodResizePending','status':'True','reason':'"
                                                "Infeasible'}],'containerStatuses':["
                                                "{'name':'c','allocatedResources':{'cpu':'2'},'"
                                                "resources':{'requests':{'cpu':'3'}}}]}}");
    p = kube_state_pod(kube.state, "default", "r");
    assert_string_equal(kube_pod_info(p)->refused, "Infeasible");
    assert_true(kube_pod_info(p)->requests.of[KUBE_CPU] == 3000);
    assert_true(kube_pod_info(p)->requests.of[KUBE_MEMORY] == GIB);
}

static void marks(void **state) {
    (void)state;
    const KubePodInfo *i =
        pod("m",
            ",'labels':{'cotenant.io/gang':'g','scheduling.x-k8s.io/pod-group':'h'},"
            "'annotations':{'cotenant.io/gang-min':'4','cotenant.io/fungible':'true',"
            "'cotenant.io/cores-min':'500m','cotenant.io/cores-max':'8','cotenant.io/memory-max':"
            "'4Gi','cotenant.io/gpu-fraction':'0.5','cotenant.io/progress':'1200 2.5 1767323045'}",
            "");
    assert_null(i->unsupported);
    assert_string_equal(i->group, "g");
    assert_true(i->group_min == 4 && i->fungible && i->gpu_milli == 500);
    assert_true(i->cores_min == 0.5 && i->cores_max == 8 && i->memory_min == 0);
    assert_true(i->memory_max == 4.0 * (double)GIB);
    assert_true(i->progress == 1200 && i->progress_rate == 2.5);
    assert_true(i->progress_at == INT64_C(1767323045) * 1000000000);
    i = pod("h", ",'annotations':{'cotenant.io/progress':'nonsense'}",
            ",'containers':[{'name':'c','resources':{'requests':{'nvidia.com/gpu':'1',"
            "'nvidia.com/gpucores':'30','nvidia.com/gpumem':'4000'}}}]");
    assert_true(i->gpu_milli == 300 && i->requests.of[KUBE_GPU] == 1 && i->progress == 0);
    assert_string_equal(i->tenant, "default");
}

static void of_namespace(void **state) {
    (void)state;
    (void)pod("p", "", "");
    (void)pod("q", ",'annotations':{'cotenant.io/fungible':'false','cotenant.io/cores-max':'2'}",
              "");
    kube_case_put(&kube, KUBE_NAMESPACES,
                  "{'metadata':{'name':'default','annotations':{'cotenant.io/fungible':'true',"
                  "'cotenant.io/cores-max':'6'}}}");
    const KubePodInfo *p = kube_pod_info(kube_state_pod(kube.state, "default", "p"));
    const KubePodInfo *q = kube_pod_info(kube_state_pod(kube.state, "default", "q"));
    assert_true(p->fungible && p->cores_max == 6 && !q->fungible && q->cores_max == 2);
    kube_case_gone(&kube, KUBE_NAMESPACES, "{'metadata':{'name':'default'}}");
    assert_true(!p->fungible && p->cores_max == 0);
}

static void gangs(void **state) {
    (void)state;
    (void)pod("p", ",'labels':{'scheduling.x-k8s.io/pod-group':'g'}", "");
    KubePod *p = kube_state_pod(kube.state, "default", "p");
    assert_false(kube_state_gang(kube.state, p).known);
    kube_case_put(&kube, KUBE_POD_GROUPS,
                  "{'metadata':{'name':'g','namespace':'default'},'spec':{'minMember':3,"
                  "'scheduleTimeoutSeconds':60}}");
    KubeGang g = kube_state_gang(kube.state, p);
    assert_true(g.known && g.min == 3 && g.timeout == INT64_C(60000000000));
}

static void refuse(const char *meta, const char *spec, const char *why) {
    const KubePodInfo *i = pod("bad", meta, spec);
    if (i->unsupported == NULL || strstr(i->unsupported, why) == NULL)
        fail_msg("'%s' does not say '%s'", i->unsupported != NULL ? i->unsupported : "", why);
}

static void refused(void **state) {
    (void)state;
    refuse("", ",'spaceship':1", "spec.spaceship");
    refuse("", ",'schedulingGroup':{'podGroupName':'x'}", "spec.schedulingGroup");
    refuse("", ",'tolerations':[{'key':'a','operator':'Lt','value':'3'}]", "operator: 'Lt'");
    refuse("", ",'affinity':{'moonAffinity':{}}", "spec.affinity.moonAffinity");
    refuse("",
           ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
           "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'a','operator':'Near'}]}]}}}",
           "'Near'");
    refuse("", ",'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'z','newField':2}]",
           "spec.topologySpreadConstraints.newField");
    refuse("", ",'volumes':[{'name':'v','iscsi':{}}]", "spec.volumes[v].iscsi");
    refuse("", ",'containers':[{'name':'c','resources':{'requests':{'cpu':'lots'}}}]", "'lots'");
    refuse("", ",'containers':[{'name':'c','resources':{'requests':{'cpu':'-1'}}}]", "negative");
    refuse(",'annotations':{'cotenant.io/gpu-fraction':'2'}", "", "gpu-fraction");
    refuse(",'annotations':{'cotenant.io/cores-min':'4','cotenant.io/cores-max':'2'}", "",
           "cores-min");
    kube_case_put(&kube, KUBE_PODS_KIND, "{'metadata':{'name':'x'},'spec':[]}");
    assert_non_null(kube_pod_info(kube_state_pod(kube.state, "default", "x"))->unsupported);
    kube_case_put(&kube, KUBE_PODS_KIND, "{'metadata':{'name':7}}");
}

TEST_MAIN() {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {TEST(whole), TEST(effective),    TEST(resize), TEST(marks),
                                       TEST(gangs), TEST(of_namespace), TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
