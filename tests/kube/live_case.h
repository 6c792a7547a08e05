// LiveCase: a small cluster of JSON objects for tests without a server.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kube/kube_plan.h"
#include "kube/kube_view.h"

static inline json_t *live_case_json(const char *fmt, ...) PRINTF(1, 2);
static inline json_t *live_case_json(const char *fmt, ...) {
    char    text[4096];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    assert_true(n > 0 && n < (int)sizeof text);
    json_t *doc = json_loads(text, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static inline void live_case_node(KubeState *s, const char *name, int cores, int gpus,
                                  const char *spec) {
    json_t *doc = live_case_json(
        "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"1\"},\"spec\":{%s},"
        "\"status\":{\"allocatable\":{\"cpu\":\"%d\",\"memory\":\"64Gi\",\"pods\":\"110\","
        "\"nvidia.com/gpu\":\"%d\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
        name, name, spec, cores, gpus);
    kube_state_put(s, KUBE_NODES, doc);
    json_decref(doc);
}

typedef struct LiveCasePod {
    const char *name, *uid, *gang, *node, *phase, *cpu;  // NULL: none, "Pending", "1"
    const char *notes;                                   // annotations, as members
    int         gpus, min, priority, created;            // created: second of the minute
} LiveCasePod;

static inline void live_case_pod(KubeState *s, const LiveCasePod *p) {
    static int version;  // of the object: equal ones are not read again
    char       labels[200] = "", notes[400] = "", node[100] = "", gpus[60] = "", min[80] = "";
    if (p->gang != NULL) {
        (void)snprintf(labels, sizeof labels, "\"cotenant.io/gang\":\"%s\"", p->gang);
        (void)snprintf(min, sizeof min, "\"cotenant.io/gang-min\":\"%d\"%s", p->min,
                       p->notes != NULL ? "," : "");
    }
    (void)snprintf(notes, sizeof notes, "%s%s", min, p->notes != NULL ? p->notes : "");
    if (p->node != NULL) (void)snprintf(node, sizeof node, "\"nodeName\":\"%s\",", p->node);
    if (p->gpus > 0) (void)snprintf(gpus, sizeof gpus, ",\"nvidia.com/gpu\":\"%d\"", p->gpus);
    json_t *doc = live_case_json(
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"%s\","
        "\"resourceVersion\":\"%d\",\"creationTimestamp\":\"2026-01-01T00:00:%02dZ\","
        "\"labels\":{%s},\"annotations\":{%s}},"
        "\"spec\":{%s\"schedulerName\":\"cotenant\",\"priority\":%d,\"containers\":[{\"name\":"
        "\"c\","
        "\"resources\":{\"requests\":{\"cpu\":\"%s\",\"memory\":\"1Gi\"%s},"
        "\"limits\":{\"memory\":\"2Gi\"%s}}}]},\"status\":{\"phase\":\"%s\"}}",
        p->name, p->uid != NULL ? p->uid : p->name, ++version, p->created, labels, notes, node,
        p->priority, p->cpu != NULL ? p->cpu : "1", gpus, gpus,
        p->phase != NULL ? p->phase : "Pending");
    kube_state_put(s, KUBE_PODS_KIND, doc);
    json_decref(doc);
}

static inline void live_case_gone(KubeState *s, const char *name) {
    json_t *doc =
        live_case_json("{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\"}}", name);
    kube_state_gone(s, KUBE_PODS_KIND, doc);
    json_decref(doc);
}

#define LIVE_CASE_NOW (INT64_C(1767225600) * CLUSTER_SECOND + 3600 * CLUSTER_SECOND)

typedef struct LiveCase {
    KubeState    *state;
    KubeJobs      jobs;
    KubeView      view;
    KubePlan      plan;
    KubePlanRules rules;
    Arena         arena;
    TimeNs        now;
    bool          anew;
} LiveCase;

static inline void live_case_open(LiveCase *c) {
    *c = (LiveCase){.now = LIVE_CASE_NOW,
                    .rules = {.act = KUBE_ACT_ALL, .preemption = KUBE_PREEMPT_PRIORITY}};
    assert_int_equal(kube_state_create(&c->state, NULL), ERR_OK);
    assert_int_equal(kube_jobs_init(&c->jobs, 16), ERR_OK);
    assert_int_equal(arena_init(&c->arena, (size_t)1 << 30), ERR_OK);
    kube_view_init(&c->view);
    kube_plan_init(&c->plan, c->state, &c->jobs, &c->rules);
}

static inline void live_case_close(LiveCase *c) {
    kube_plan_finish(&c->plan);
    kube_view_finish(&c->view);
    kube_jobs_finish(&c->jobs);
    kube_state_destroy(c->state);
    arena_finish(&c->arena);
}

// Jobs and the view as of now.
static inline const ClusterView *live_case_look(LiveCase *c) {
    const KubeRules rules = {.stops = {0, 0}, .seed = 1};
    KubeServer     *servers;
    KubeJobs       *x = &c->jobs;
    c->now += CLUSTER_SECOND;
    assert_int_equal(kube_jobs_update(x, c->state, c->now), ERR_OK);
    KubePicture p = {.now = c->now,
                     .tenants = (const char *const *)x->tenants,
                     .tasks = x->tasks,
                     .waiting = x->waiting,
                     .running = x->running,
                     .n_tenants = x->n_tenants,
                     .n_slots = x->n_slots,
                     .n_waiting = x->n_waiting,
                     .n_running = x->n_running,
                     .generation = x->bits.generation,
                     .fractions = x->fractions,
                     .no_gpus = x->no_gpus};
    assert_int_equal(kube_view_servers(c->state, x, &c->arena, &servers, &p.n_servers), ERR_OK);
    p.servers = servers;
    assert_int_equal(kube_view_build(&c->view, &p, &rules, &c->anew), ERR_OK);
    kube_plan_open(&c->plan);
    return &c->view.view;
}

static inline KubeJob *live_case_job(const LiveCase *c, const char *name) {
    for (uint32_t i = 0; i < c->jobs.n_slots; i++)
        if (c->jobs.at[i] != NULL && strcmp(c->jobs.at[i]->name, name) == 0) return c->jobs.at[i];
    return NULL;
}
