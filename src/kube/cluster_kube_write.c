// The queue of writes: binds first, at most eight calls at once, each outcome to its end. What may
// have been done without an answer is read back, never guessed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kube/cluster_kube_int.h"
#include "kube/kube_resize.h"

enum { IN_FLIGHT = 8, TRIES = 5 };

static const TimeNs pause_ns = CLUSTER_SECOND / 2, most_pause_ns = 10 * CLUSTER_SECOND,
                    evict_patience = 60 * CLUSTER_SECOND, no_resize_ns = 600 * CLUSTER_SECOND;

static void free_write(KubeWrite *w) {
    free(w->namespace_name);
    free(w->name);
    free(w->uid);
    free(w->node);
    free(w->path);
    free(w->body);
    free(w->second_path);
    free(w);
}

static void push(KubeWriteList *l, KubeWrite *w) {
    w->next = NULL;
    if (l->last != NULL)
        l->last->next = w;
    else
        l->first = w;
    l->last = w;
    l->n++;
}

static KubeWriteList *list_of(ClusterKube *k, const KubeWrite *w) {
    return w->kind == KUBE_WRITE_BIND ? &k->binds : &k->others;
}

// The first that may be sent now.
static KubeWrite *pop_due(KubeWriteList *l, TimeNs now) {
    KubeWrite *before = NULL;
    for (KubeWrite *w = l->first; w != NULL; before = w, w = w->next) {
        if (w->not_before > now && !w->cancelled) continue;
        if (before != NULL)
            before->next = w->next;
        else
            l->first = w->next;
        if (l->last == w) l->last = before;
        l->n--;
        return w;
    }
    return NULL;
}

KubeJob *cluster_kube_job(ClusterKube *k, uint64_t serial) {
    for (uint32_t i = 0; k->open && serial != 0 && i < k->jobs.n_slots; i++)
        if (k->jobs.at[i] != NULL && k->jobs.at[i]->serial == serial) return k->jobs.at[i];
    return NULL;
}

// The pod as the state has it, if it is still the same one.
static KubePod *pod_of(const ClusterKube *k, const KubeWrite *w) {
    KubePod *p = k->open ? kube_state_pod(k->state, w->namespace_name, w->name) : NULL;
    return p != NULL && strcmp(kube_pod_info(p)->uid, w->uid) == 0 ? p : NULL;
}

static void forget(ClusterKube *k, const KubeWrite *w) {
    KubePod *p = pod_of(k, w);
    if (p != NULL && kube_state_assumed(k->state, p) != NULL) kube_state_forget(k->state, p);
    cluster_kube_changed(k);
}

static void tell(ClusterKube *k, const KubeWrite *w, const char *fault) {
    KubeWritten x = {.kind = w->kind,
                     .done = fault == NULL,
                     .namespace_name = w->namespace_name,
                     .name = w->name,
                     .uid = w->uid,
                     .node = w->node,
                     .fault = fault,
                     .took = clock_monotonic_ns() - w->since};
    k->counts.written[w->kind] += fault == NULL;
    k->counts.failed[w->kind] += fault != NULL;
    if (k->options.hooks.written != NULL)
        k->options.hooks.written(k->options.hooks.self, cluster_kube_now(k), &x);
    if (fault != NULL && w->kind != KUBE_WRITE_EVENT)
        log_with(k->options.log, LOG_WARN, "write failed", log_text("pod", w->name),
                 log_text("namespace", w->namespace_name), log_text("why", fault));
}

// The rest of a gang is not bound any more; what was bound stays and counts.
static void cancel_gang(ClusterKube *k, uint64_t serial) {
    for (KubeWrite *w = k->binds.first; w != NULL; w = w->next)
        if (w->serial == serial) w->cancelled = true;
}

static void bind_failed(ClusterKube *k, KubeWrite *w, const char *fault) {
    KubeJob *j = cluster_kube_job(k, w->serial);
    tell(k, w, fault);
    forget(k, w);
    cancel_gang(k, w->serial);
    if (j != NULL) kube_jobs_refused(&k->jobs, j, kube_state_version(k->state));
}

static void fail(ClusterKube *k, KubeWrite *w, const char *fault) {
    KubeJob *j = cluster_kube_job(k, w->serial);
    if (w->kind == KUBE_WRITE_BIND) {
        bind_failed(k, w, fault);
        return;
    }
    tell(k, w, fault);
    if (j != NULL && w->kind == KUBE_WRITE_EVICT) j->evicted = false;
    if (j != NULL && w->kind == KUBE_WRITE_RESIZE) j->resized_at += no_resize_ns;
}

static void submit(ClusterKube *k, KubeWrite *w);

static void again_at(ClusterKube *k, KubeWrite *w, TimeNs at) {
    w->not_before = at;
    push(list_of(k, w), w);
}

static void again(ClusterKube *k, KubeWrite *w, TimeNs after) {
    TimeNs pause = pause_ns << (w->tries < 6 ? w->tries : 6);
    if (pause > most_pause_ns) pause = most_pause_ns;
    w->tries++;
    again_at(k, w, clock_monotonic_ns() + (after > pause ? after : pause));
}

static void fault_text(const KubeReply *r, char *out, size_t room) {
    if (r->outcome != KUBE_DONE)
        (void)snprintf(out, room, "%s", r->fault != NULL ? r->fault : "no answer");
    else
        (void)snprintf(out, room, "status %u: %.200s", r->status, r->body != NULL ? r->body : "");
}

static const char *text_in(const json_t *doc, const char *object, const char *key) {
    return json_string_value(json_object_get(json_object_get(doc, object), key));
}

// The pod itself says what became of a bind.
static void read_bind(ClusterKube *k, KubeWrite *w, const json_t *pod) {
    const char *uid = text_in(pod, "metadata", "uid"), *node = text_in(pod, "spec", "nodeName");
    k->counts.read_back++;
    if (uid == NULL || strcmp(uid, w->uid) != 0)
        bind_failed(k, w, "it was made anew under its name");
    else if (node != NULL && strcmp(node, w->node) == 0)
        tell(k, w, NULL);
    else
        bind_failed(k, w,
                    node != NULL ? "it was bound to another node"
                    : text_in(pod, "metadata", "deletionTimestamp") != NULL
                        ? "it is being deleted"
                        : "it changed, or is gated");
    k->counts.conflicts += node == NULL || strcmp(node, w->node) != 0;
}

static bool read_pod(ClusterKube *k, KubeWrite *w, const KubeReply *r) {
    json_t *pod = NULL;
    if (json_parse("pod", r->body, r->len, &pod) != ERR_OK) {
        fail(k, w, err_why());
        return true;
    }
    if (w->kind == KUBE_WRITE_BIND) {
        read_bind(k, w, pod);
        json_decref(pod);
        return true;
    }
    free(w->body);
    w->body = NULL;
    Err e = kube_resize_patch(pod, w->cores_milli, w->bytes, &w->body);
    json_decref(pod);
    if (e != ERR_OK || w->body == NULL) {
        if (e != ERR_OK) fail(k, w, err_why());
        return true;
    }
    w->reads = false;
    again_at(k, w, 0);
    return false;
}

// True: the write has come to its end.
static bool after_read(ClusterKube *k, KubeWrite *w, const KubeReply *r) {
    if (r->outcome == KUBE_DONE && r->status == 404) {
        fail(k, w, "it is gone");
        return true;
    }
    if (r->outcome == KUBE_DONE && r->status == 200) return read_pod(k, w, r);
    again(k, w, r->retry_after);  // as long as it takes: an assumption has no time limit
    return false;
}

static bool after_bind(ClusterKube *k, KubeWrite *w, const KubeReply *r) {
    char why[256];
    bool answered = r->outcome == KUBE_DONE;
    fault_text(r, why, sizeof why);
    if (answered && r->status / 100 == 2) {
        tell(k, w, NULL);
        return true;
    }
    bool never = r->outcome == KUBE_NOT_SENT || (answered && r->status == 429);
    if (never && w->tries < TRIES) {
        again(k, w, r->retry_after);
        return false;
    }
    bool definite = never || (answered && r->status >= 400 && r->status < 500 && r->status != 409 &&
                              r->status != 408);
    if (definite) {
        bind_failed(k, w, why);
        return true;
    }
    w->reads = true;  // 409, 5xx, or no answer: the pod says
    again_at(k, w, 0);
    return false;
}

static bool after_other(ClusterKube *k, KubeWrite *w, const KubeReply *r) {
    char why[256];
    bool answered = r->outcome == KUBE_DONE;
    fault_text(r, why, sizeof why);
    if (answered && (r->status / 100 == 2 || (r->status == 404 && w->kind == KUBE_WRITE_EVICT))) {
        tell(k, w, NULL);
        return true;
    }
    bool     busy = !answered || r->status == 429 || r->status >= 500;
    bool     budget = w->kind == KUBE_WRITE_EVICT && answered && r->status == 429;
    uint32_t tries = w->kind >= KUBE_WRITE_CONDITION ? 1 : TRIES;
    bool     late = clock_monotonic_ns() - w->since > evict_patience;
    if (busy && (budget ? !late : w->tries < tries)) {
        again(k, w, r->retry_after);
        return false;
    }
    fail(k, w, why);
    return true;
}

static void unlink_flying(ClusterKube *k, KubeWrite *w) {
    KubeWrite **at = &k->flying;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    k->in_flight--;
}

static void done(void *self, KubeCall *c, const KubeReply *r) {
    KubeWrite   *w = self;
    ClusterKube *k = w->engine;
    (void)c;
    unlink_flying(k, w);
    bool over = w->reads                     ? after_read(k, w, r)
                : w->kind == KUBE_WRITE_BIND ? after_bind(k, w, r)
                                             : after_other(k, w, r);
    if (over) free_write(w);
    cluster_kube_pump(k);
    cluster_kube_landed(k);
}

static const char *method_of(const KubeWrite *w) {
    if (w->reads) return "GET";
    return w->kind == KUBE_WRITE_RESIZE || w->kind == KUBE_WRITE_CONDITION ? "PATCH" : "POST";
}

static void submit(ClusterKube *k, KubeWrite *w) {
    bool patches = !w->reads && strcmp(method_of(w), "PATCH") == 0;
    w->call = (KubeCall){.method = method_of(w),
                         .path = w->reads ? w->second_path : w->path,
                         .type = patches ? "application/strategic-merge-patch+json" : NULL,
                         .body = w->reads ? NULL : w->body,
                         .done = done,
                         .self = w};
    if (w->call.body != NULL) w->call.len = strlen(w->call.body);
    w->next = k->flying;
    k->flying = w;
    k->in_flight++;
    kube_api_submit(k->api, &w->call);
}

// The newest state must still allow the bind: the pod is taken out of the account, asked for, and
// put back.
static const char *not_bindable(ClusterKube *k, const KubeWrite *w) {
    KubePod    *p = pod_of(k, w);
    KubeNode   *n = k->open ? kube_state_node(k->state, w->node) : NULL;
    KubeVerdict why;
    if (p == NULL) return "it is gone";
    const KubePodInfo *i = kube_pod_info(p);
    if (i->node != NULL) return "it is bound";
    if (i->terminating || i->gated || i->unsupported != NULL) return "it changed";
    if (n == NULL) return "its node is gone";
    if (kube_state_assumed(k->state, p) != n) return "it is not assumed there any more";
    kube_state_forget(k->state, p);
    bool fits = kube_fit(k->state, p, n, NULL, &why);
    kube_state_assume(k->state, p, n);
    return fits ? NULL : "it does not fit any more";
}

// False: nothing may be sent; it stays in the queue or is dropped.
static bool send_one(ClusterKube *k, KubeWriteList *l) {
    KubeWrite *w = pop_due(l, clock_monotonic_ns());
    if (w == NULL) return false;
    if (w->kind == KUBE_WRITE_BIND && !w->reads) {
        const char *why = w->cancelled ? "another pod of its gang failed" : not_bindable(k, w);
        if (why != NULL) {
            bind_failed(k, w, why);
            free_write(w);
            return true;
        }
    }
    submit(k, w);
    return true;
}

void cluster_kube_pump(ClusterKube *k) {
    while (k->in_flight < IN_FLIGHT && cluster_kube_may_write(k))
        if (!send_one(k, &k->binds) && !send_one(k, &k->others)) return;
}

static void drop_list(KubeWriteList *l) {
    for (KubeWrite *w = l->first, *next; w != NULL; w = next) {
        next = w->next;
        free_write(w);
    }
    *l = (KubeWriteList){.n = 0};
}

void cluster_kube_drop_writes(ClusterKube *k) {
    drop_list(&k->binds);
    drop_list(&k->others);
    while (k->flying != NULL) {
        KubeWrite *w = k->flying;
        kube_api_cancel(k->api, &w->call);
        unlink_flying(k, w);
        free_write(w);
    }
}

static KubeWrite *new_write(ClusterKube *k, KubeWriteKind kind, const KubePodInfo *p) {
    KubeWrite *w = calloc(1, sizeof *w);
    if (w == NULL) return NULL;
    w->engine = k;
    w->kind = kind;
    w->since = clock_monotonic_ns();
    w->namespace_name = strdup(p->namespace_name);
    w->name = strdup(p->name);
    w->uid = strdup(p->uid);
    if (w->namespace_name != NULL && w->name != NULL && w->uid != NULL) return w;
    free_write(w);
    return NULL;
}

static Err no_memory(void) { return err_set(ERR_LIMIT, "no memory for a write"); }

static Err queue(ClusterKube *k, KubeWrite *w) {
    if (w->path == NULL || (w->body == NULL && !w->reads)) {
        free_write(w);
        return no_memory();
    }
    push(list_of(k, w), w);
    return ERR_OK;
}

static char *pod_path(const KubePodInfo *p, const char *sub) {
    char *out = NULL;
    if (asprintf(&out, "/api/v1/namespaces/%s/pods/%s%s", p->namespace_name, p->name, sub) < 0)
        return NULL;
    return out;
}

static char *dumped(json_t *doc) {
    char *text = doc != NULL ? json_dumps(doc, JSON_COMPACT) : NULL;
    json_decref(doc);
    return text;
}

static Err write_bind(ClusterKube *k, const KubeStep *s) {
    const KubePodInfo *p = kube_pod_info(s->member->pod);
    KubeWrite         *w = new_write(k, KUBE_WRITE_BIND, p);
    if (w == NULL) return no_memory();
    w->serial = s->job->serial;
    w->node = strdup(kube_node_info(s->node)->name);
    w->path = pod_path(p, "/binding");
    w->second_path = pod_path(p, "");
    w->body = dumped(json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:s,s:s,s:s}}", "apiVersion", "v1", "kind",
                               "Binding", "metadata", "name", p->name, "uid", p->uid, "target",
                               "apiVersion", "v1", "kind", "Node", "name",
                               kube_node_info(s->node)->name));
    return queue(k, w);
}

static Err write_evict(ClusterKube *k, const KubeStep *s) {
    const KubePodInfo *p = kube_pod_info(s->member->pod);
    KubeWrite         *w = new_write(k, KUBE_WRITE_EVICT, p);
    if (w == NULL) return no_memory();
    w->serial = s->job->serial;
    w->path = pod_path(p, "/eviction");
    w->body = dumped(json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:{s:s}}}", "apiVersion",
                               k->has_eviction_v1 ? "policy/v1" : "policy/v1beta1", "kind",
                               "Eviction", "metadata", "name", p->name, "namespace",
                               p->namespace_name, "deleteOptions", "preconditions", "uid", p->uid));
    TRY(queue(k, w));
    char note[256];
    (void)snprintf(note, sizeof note, "Preempted for %s/%s", s->for_job->namespace_name,
                   s->for_job->name);
    cluster_kube_event(k, p, "Normal", "Preempted", "Preempting", note);
    return ERR_OK;
}

static Err write_resize(ClusterKube *k, const KubeStep *s) {
    const KubePodInfo *p = kube_pod_info(s->member->pod);
    KubeWrite         *w = new_write(k, KUBE_WRITE_RESIZE, p);
    if (w == NULL) return no_memory();
    w->serial = s->job->serial;
    w->cores_milli = s->cores_milli;
    w->bytes = s->bytes;
    w->path = pod_path(p, "/resize");
    w->second_path = pod_path(p, "");
    w->reads = true;  // the patch needs the containers
    return queue(k, w);
}

Err cluster_kube_write_step(ClusterKube *k, const KubeStep *s) {
    if (k->options.dry_run) return ERR_OK;
    switch (s->kind) {
    case KUBE_STEP_BIND: return write_bind(k, s);
    case KUBE_STEP_EVICT: return write_evict(k, s);
    case KUBE_STEP_RESIZE: return write_resize(k, s);
    }
    return ERR_OK;
}

Err cluster_kube_write_patch(ClusterKube *k, KubeWriteKind kind, const KubePodInfo *p, char *path,
                             char *body) {
    KubeWrite *w = new_write(k, kind, p);
    if (w == NULL) {
        free(path);
        free(body);
        return no_memory();
    }
    w->path = path;
    w->body = body;
    return queue(k, w);
}
