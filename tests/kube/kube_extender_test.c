#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kube/kube_extender.h"
#include "tests/kube/kube_case.h"
#include "tests/runner.h"

#define ONE ",'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]"

static KubeCase     c;
static KubeExtender x;
static Arena        arena;

static int setup(void **state) {
    (void)state;
    kube_case_begin(&c, NULL);
    kube_case_node(&c, "n0", "", "");
    kube_case_node(&c, "n1", "", "");
    kube_case_node(&c, "n2", "", ",'taints':[{'key':'team','effect':'NoSchedule'}]");
    x = (KubeExtender){.state = c.state};
    return arena_init(&arena, 1 << 20) != ERR_OK;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    kube_case_end(&c);
    return 0;
}

static char *single(const char *text) {  // single quotes become double ones
    char *out = strdup(text);
    for (char *at = out; *at != '\0'; at++)
        if (*at == '\'') *at = '"';
    return out;
}

static Err ask(KubeExtenderVerb v, const char *body, json_t **out) {
    char *text = single(body), *reply = NULL;
    Err   e = kube_extender_answer(&x, v, text, strlen(text), &reply);
    *out = e == ERR_OK ? json_loads(reply, 0, NULL) : NULL;
    free(text);
    free(reply);
    return e;
}

static const json_t *at(const json_t *o, const char *key) { return json_object_get(o, key); }

static const char *uid_of(const char *pod) {
    return kube_pod_info(kube_state_pod(c.state, "default", pod))->uid;
}

static char *request(const char *pod, const char *more) {
    return arena_printf(&arena,
                        "{'Pod':{'metadata':{'namespace':'default','name':'%s','uid':'%s'}},%s}",
                        pod, uid_of(pod), more);
}

// n0 is fuller than n1, and suffices; n2 refuses for ever.
static void test_filter(void **state) {
    (void)state;
    json_t *out;
    (void)kube_case_bound(&c, "other", "n0", "", ONE);
    (void)kube_case_pod(&c, "p", "", ONE);
    assert_int_equal(ask(EXTENDER_FILTER, request("p", "'NodeNames':['n0','n1','n2','n9']"), &out),
                     ERR_OK);
    assert_int_equal(json_array_size(at(out, "NodeNames")), 1);
    assert_string_equal(json_string_value(json_array_get(at(out, "NodeNames"), 0)), "n0");
    assert_string_equal(json_string_value(at(at(out, "FailedNodes"), "n1")),
                        "the policy places the pod on n0");
    assert_non_null(strstr(json_string_value(at(at(out, "FailedAndUnresolvableNodes"), "n2")),
                           "untolerated taint"));
    assert_non_null(at(at(out, "FailedAndUnresolvableNodes"), "n9"));
    assert_string_equal(json_string_value(at(out, "Error")), "");
    json_decref(out);
}

static void test_full_nodes(void **state) {
    (void)state;
    json_t *out;
    (void)kube_case_pod(&c, "p", "", ONE);
    char *body = request("p", "'NodeNames':null,'Nodes':{'items':[{'metadata':{'name':'n1'},"
                              "'spec':{'x':1}},{'metadata':{'name':'n2'}},{}]}");
    assert_int_equal(ask(EXTENDER_FILTER, body, &out), ERR_OK);
    const json_t *items = at(at(out, "Nodes"), "items");
    assert_int_equal(json_array_size(items), 1);
    assert_int_equal(json_integer_value(at(at(json_array_get(items, 0), "spec"), "x")), 1);
    assert_true(json_is_null(at(out, "NodeNames")));
    json_decref(out);
}

static void test_prioritize(void **state) {
    (void)state;
    json_t *out;
    (void)kube_case_bound(&c, "other", "n1", "", ONE);
    (void)kube_case_pod(&c, "p", "", ONE);
    assert_int_equal(ask(EXTENDER_PRIORITIZE, request("p", "'NodeNames':['n0','n1','n2']"), &out),
                     ERR_OK);
    assert_int_equal(json_array_size(out), 3);
    assert_int_equal(json_integer_value(at(json_array_get(out, 1), "Score")), 10);
    assert_true(json_integer_value(at(json_array_get(out, 0), "Score")) < 10);
    assert_int_equal(json_integer_value(at(json_array_get(out, 2), "Score")), 0);
    json_decref(out);
}

static void test_unknown_pods(void **state) {
    (void)state;
    json_t *out;
    (void)kube_case_pod(&c, "p", "", ONE);
    assert_int_equal(ask(EXTENDER_FILTER,
                         "{'Pod':{'metadata':{'namespace':'default','name':'nobody','uid':'u'}},"
                         "'NodeNames':['n0']}",
                         &out),
                     ERR_OK);
    assert_non_null(strstr(json_string_value(at(out, "Error")), "not seen pod default/nobody"));
    json_decref(out);
    assert_int_equal(ask(EXTENDER_FILTER,
                         "{'Pod':{'metadata':{'namespace':'default','name':'p','uid':'old'}},"
                         "'NodeNames':['n0']}",
                         &out),
                     ERR_OK);
    assert_non_null(strstr(json_string_value(at(out, "Error")), "another one now"));
    json_decref(out);
    assert_int_not_equal(ask(EXTENDER_FILTER, request("p", "'NodeNames':null"), &out), ERR_OK);
    assert_int_not_equal(ask(EXTENDER_FILTER, "{'Pod'", &out), ERR_OK);
    assert_int_not_equal(ask(EXTENDER_PREEMPT, "7", &out), ERR_OK);
}

static KubeNode *nowhere(void *self, KubePod *p, KubeNode *was, const uint64_t *allowed,
                         char why[EXTENDER_WHY]) {
    (void)self, (void)p, (void)was, (void)allowed;
    (void)snprintf(why, EXTENDER_WHY, "its gang is incomplete");
    return NULL;
}

static void test_policy_waits(void **state) {
    (void)state;
    json_t *out;
    (void)kube_case_pod(&c, "p", "", ONE);
    x.place = nowhere;
    assert_int_equal(ask(EXTENDER_FILTER, request("p", "'NodeNames':['n0','n1']"), &out), ERR_OK);
    assert_int_equal(json_array_size(at(out, "NodeNames")), 0);
    assert_string_equal(json_string_value(at(at(out, "FailedNodes"), "n1")),
                        "its gang is incomplete");
    json_decref(out);
}

static const char *bind_to(const char *pod, const char *uid, const char *node) {
    KubePod    *p;
    KubeNode   *n;
    const char *fault;
    char       *text = single(
              arena_printf(&arena, "{'PodName':'%s','PodNamespace':'default','PodUID':'%s','Node':'%s'}",
                           pod, uid, node));
    assert_int_equal(kube_extender_bind(&x, text, strlen(text), &arena, &p, &n, &fault), ERR_OK);
    free(text);
    return fault;
}

static void test_bind(void **state) {
    (void)state;
    KubePod *p = kube_case_pod(&c, "p", "", ONE);
    assert_null(bind_to("p", uid_of("p"), "n0"));
    assert_non_null(strstr(bind_to("p", "old", "n0"), "another one now"));
    assert_non_null(strstr(bind_to("p", uid_of("p"), "n9"), "unknown to cotenant"));
    assert_non_null(strstr(bind_to("p", uid_of("p"), "n2"), "untolerated taint"));
    kube_state_assume(c.state, p, kube_state_node(c.state, "n1"));
    assert_non_null(strstr(bind_to("p", uid_of("p"), "n0"), "place is n1"));
    assert_null(bind_to("p", uid_of("p"), "n1"));
    assert_non_null(kube_state_assumed(c.state, p));
    (void)kube_case_bound(&c, "b", "n0", "", ONE);
    assert_non_null(strstr(bind_to("b", uid_of("b"), "n0"), "bound to n0 already"));
}

static size_t preempts(const char *preemptor, const char *victims) {
    json_t *out;
    char   *body = request(preemptor, arena_printf(&arena,
                                                   "'NodeNameToMetaVictims':{'n0':{'Pods':[%s],"
                                                     "'NumPDBViolations':1}}",
                                                   victims));
    assert_int_equal(ask(EXTENDER_PREEMPT, body, &out), ERR_OK);
    size_t n = json_object_size(at(out, "NodeNameToMetaVictims"));
    json_decref(out);
    return n;
}

static char *victim(const char *pod) { return arena_printf(&arena, "{'UID':'%s'}", uid_of(pod)); }

// Only whole gangs, only lower priorities, only where room comes of it.
static void test_preempt(void **state) {
    (void)state;
    const char *wide =
        ",'priority':5,'containers':[{'name':'c','resources':{'requests':{'cpu':'4'}}}]";
    const char *part = ",'containers':[{'name':'c','resources':{'requests':{'cpu':'2'}}}]";
    const char *gang = ",'labels':{'cotenant.io/gang':'g'}";
    (void)kube_case_pod(&c, "p", "", wide);
    (void)kube_case_bound(&c, "a", "n0", "", part);
    (void)kube_case_bound(&c, "g0", "n0", gang, part);
    (void)kube_case_bound(&c, "g1", "n1", gang, part);
    const char *both = arena_printf(&arena, "%s,%s", victim("a"), victim("g0"));
    assert_int_equal(preempts("p", victim("a")), 0);
    assert_int_equal(preempts("p", both), 0);
    kube_case_gone(&c, KUBE_PODS_KIND, "{'metadata':{'namespace':'default','name':'g1'}}");
    assert_int_equal(preempts("p", both), 1);
    (void)kube_case_pod(&c, "q", "", wide + sizeof ",'priority':5" - 1);
    assert_int_equal(preempts("q", both), 0);
    assert_int_equal(preempts("p", "{'UID':'nothing'},{}"), 0);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
TEST_MAIN() {
    const struct CMUnitTest tests[] = {CASE(test_filter),       CASE(test_full_nodes),
                                       CASE(test_prioritize),   CASE(test_unknown_pods),
                                       CASE(test_policy_waits), CASE(test_bind),
                                       CASE(test_preempt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
