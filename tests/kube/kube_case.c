#include "tests/kube/kube_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void kube_case_begin(KubeCase *c, const KubeStateOptions *o) {
    assert_int_equal(kube_state_create(&c->state, o), ERR_OK);
}

void kube_case_end(KubeCase *c) { kube_state_destroy(c->state); }

static json_t *parse(const char *fmt, va_list ap) PRINTF(1, 0);
static json_t *parse(const char *fmt, va_list ap) {
    static char  text[65536];
    json_error_t why;
    assert_true((size_t)vsnprintf(text, sizeof text, fmt, ap) < sizeof text);
    for (char *at = text; (at = strchr(at, '\'')) != NULL; at++) *at = '"';
    json_t *o = json_loads(text, 0, &why);
    if (o == NULL) fail_msg("%s: %s", why.text, text);
    return o;
}

json_t *kube_case_json(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    json_t *o = parse(fmt, ap);
    va_end(ap);
    return o;
}

void kube_case_put(KubeCase *c, KubeKind k, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    json_t *o = parse(fmt, ap);
    va_end(ap);
    kube_state_put(c->state, k, o);
    json_decref(o);
}

void kube_case_gone(KubeCase *c, KubeKind k, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    json_t *o = parse(fmt, ap);
    va_end(ap);
    kube_state_gone(c->state, k, o);
    json_decref(o);
}

void kube_case_node(KubeCase *c, const char *name, const char *meta, const char *spec) {
    kube_case_put(c, KUBE_NODES,
                  "{'metadata':{'name':'%s','uid':'%s-uid'%s},'spec':{'podCIDR':'10.0.0.0/24'%s},"
                  "'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'10',"
                  "'ephemeral-storage':'100Gi','nvidia.com/gpu':'2'},"
                  "'conditions':[{'type':'Ready','status':'True'}]}}",
                  name, name, meta, spec);
}

static unsigned serial;

KubePod *kube_case_pod(KubeCase *c, const char *name, const char *meta, const char *spec) {
    return kube_case_bound(c, name, NULL, meta, spec);
}

KubePod *kube_case_bound(KubeCase *c, const char *name, const char *node, const char *meta,
                         const char *spec) {
    char where[128] = "";
    if (node != NULL) (void)snprintf(where, sizeof where, ",'nodeName':'%s'", node);
    kube_case_put(c, KUBE_PODS_KIND,
                  "{'metadata':{'name':'%s','namespace':'default','uid':'%s-uid',"
                  "'resourceVersion':'%u','creationTimestamp':'2026-01-02T03:04:05Z'%s},"
                  "'spec':{'schedulerName':'cotenant','restartPolicy':'Always'%s%s},"
                  "'status':{'phase':'Pending'}}",
                  name, name, ++serial, meta, where, spec);
    return kube_state_pod(c->state, "default", name);
}

KubeVerdict kube_case_fit(KubeCase *c, const char *pod, const char *node) {
    KubeVerdict why;
    KubePod    *p = kube_state_pod(c->state, "default", pod);
    KubeNode   *n = kube_state_node(c->state, node);
    assert_non_null(p);
    assert_non_null(n);
    bool fits = kube_fit(c->state, p, n, NULL, &why);
    assert_int_equal(fits, why.reason == FIT_OK);
    return why;
}
