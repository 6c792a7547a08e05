// Watches of all collections, discovery of what the server offers.
#include <string.h>

#include "base/json.h"
#include "kube/cluster_kube_int.h"

typedef struct WatchedPath {
    KubeKind    kind;
    const char *path, *selector;
    bool        optional;  // the collection may be missing
} WatchedPath;

static const WatchedPath paths[] = {
    {KUBE_NODES, "/api/v1/nodes", NULL, false},
    {KUBE_PODS_KIND, "/api/v1/pods",
     "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed", false},
    {KUBE_NAMESPACES, "/api/v1/namespaces", NULL, false},
    {KUBE_CLAIMS, "/api/v1/persistentvolumeclaims", NULL, false},
    {KUBE_VOLUMES, "/api/v1/persistentvolumes", NULL, false},
    {KUBE_STORAGE_CLASSES, "/apis/storage.k8s.io/v1/storageclasses", NULL, false},
    {KUBE_CSI_NODES, "/apis/storage.k8s.io/v1/csinodes", NULL, true},
    {KUBE_POD_GROUPS, "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", NULL, true},
};

enum { PATHS = sizeof paths / sizeof *paths };

static void begin(void *self) {
    KubeWatchOf *w = self;
    w->missing = false;
    kube_state_begin(w->engine->state, w->kind);
}

static void put(void *self, const json_t *object) {
    KubeWatchOf *w = self;
    kube_state_put(w->engine->state, w->kind, object);
    if (w->listed) cluster_kube_changed(w->engine);
}

static const char *text_at(const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

// Ended pods leave the selector; one that was deleted has a time of deletion.
static void note_end(ClusterKube *k, const json_t *pod) {
    const json_t *meta = json_object_get(pod, "metadata");
    if (json_object_get(meta, "deletionTimestamp") != NULL) return;
    kube_jobs_pod_ended(&k->jobs, text_at(meta, "namespace"), text_at(meta, "name"),
                        text_at(meta, "uid"));
}

static void gone(void *self, const json_t *object) {
    KubeWatchOf *w = self;
    if (w->kind == KUBE_PODS_KIND) note_end(w->engine, object);
    kube_state_gone(w->engine->state, w->kind, object);
    cluster_kube_changed(w->engine);
}

static void note_synced(ClusterKube *k, bool before) {
    if (!before && cluster_kube_synced(k))
        log_line(k->options.log, LOG_INFO, "the cluster is listed");
    cluster_kube_changed(k);
}

static void end(void *self) {
    KubeWatchOf *w = self;
    bool         before = cluster_kube_synced(w->engine);
    kube_state_end(w->engine->state, w->kind);
    w->listed = true;
    note_synced(w->engine, before);
}

static void missing(void *self) {
    KubeWatchOf *w = self;
    bool         before = cluster_kube_synced(w->engine);
    w->missing = true;
    note_synced(w->engine, before);
}

Err cluster_kube_watch(ClusterKube *k) {
    for (uint32_t i = 0; i < PATHS; i++) {
        KubeWatchOf  *w = &k->watches[paths[i].kind];
        KubeWatchSink sink = {
            .begin = begin, .put = put, .gone = gone, .end = end, .missing = missing, .self = w};
        *w = (KubeWatchOf){.engine = k, .kind = paths[i].kind};
        TRY(kube_watch_start(&w->watch, k->api, k->loop, paths[i].path, paths[i].selector, &sink,
                             rng_fork(k->rng, 100 + i)));
    }
    return ERR_OK;
}

void cluster_kube_unwatch(ClusterKube *k) {
    for (uint32_t i = 0; i < KUBE_KINDS; i++) {
        kube_watch_stop(k->watches[i].watch);
        k->watches[i] = (KubeWatchOf){.engine = k};
    }
}

bool cluster_kube_synced(const ClusterKube *k) {
    if (!k->open) return false;
    for (uint32_t i = 0; i < PATHS; i++) {
        const KubeWatchOf *w = &k->watches[paths[i].kind];
        if (!w->listed && !(w->missing && paths[i].optional)) return false;
    }
    return true;
}

static void ask(ClusterKube *k, const char *path);

static void finish_discovery(ClusterKube *k) {
    k->discovered = true;
    k->jobs.fungible = k->rules.resize;
    log_with(k->options.log, LOG_INFO, "server offers", log_bool("resize", k->rules.resize),
             log_bool("eviction_v1", k->has_eviction_v1));
    cluster_kube_changed(k);
}

static void read_core(ClusterKube *k, const json_t *doc) {
    const json_t *list = json_object_get(doc, "resources");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_at(json_array_get(list, i), "name"), "pods/resize") == 0)
            k->rules.resize = true;
}

static void read_policy(ClusterKube *k, const json_t *doc) {
    const json_t *list = json_object_get(doc, "versions");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_at(json_array_get(list, i), "version"), "v1") == 0)
            k->has_eviction_v1 = true;
}

static void discovered(void *self, KubeCall *c, const KubeReply *r) {
    ClusterKube *k = self;
    json_t      *doc = NULL;
    (void)c;
    bool good = r->outcome == KUBE_DONE && r->status == 200 &&
                json_parse("discovery", r->body, r->len, &doc) == ERR_OK;
    bool none = r->outcome == KUBE_DONE && r->status == 404;
    if (!good && !none) {
        log_with(k->options.log, LOG_WARN, "discovery failed; it is tried again",
                 log_int("status", r->status), log_text("why", r->fault != NULL ? r->fault : ""));
        if (!k->stopping && loop_arm(k->loop, &k->discovery_timer,
                                     clock_monotonic_ns() + 2 * CLUSTER_SECOND) != ERR_OK)
            cluster_kube_log_error(k, "timer failed");
        return;
    }
    if (good && k->discovery_step == 0) read_core(k, doc);
    if (good && k->discovery_step == 1) read_policy(k, doc);
    json_decref(doc);
    if (k->discovery_step++ == 0)
        ask(k, "/apis/policy");
    else
        finish_discovery(k);
}

static void ask(ClusterKube *k, const char *path) {
    k->discovery = (KubeCall){.method = "GET", .path = path, .done = discovered, .self = k};
    kube_api_submit(k->api, &k->discovery);
}

void cluster_kube_discover(ClusterKube *k) {
    k->discovery_step = 0;
    ask(k, "/api/v1");
}
