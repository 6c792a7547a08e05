// Kubernetes: pods, and optionally events, as `kubectl get pods -A -o json` gives them: lists,
// single objects, or several documents one after the other. A pod with a later copy counts once.
//
// Pods of one owner (Job, PyTorchJob, PodGroup, ...) form one job: submitted with its first pod, it
// runs from the first start to the last end, and has the most that its pods held at a time, so a
// retry counts once and a queue of work as many pods as ran together.
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cluster/trace/job_trace_int.h"
#include "cluster/trace/pod.h"
#include "cluster/trace/trace_window.h"

typedef struct PodEvent {
    const char *uid;
    bool        start;  // else end
    TimeNs      at;
} PodEvent;

typedef struct PodList {
    TraceReader *r;
    Pod         *at;  // [n] by uid
    PodEvent    *events;
    uint32_t     n, room, n_events, events_room;
    uint32_t     pods, others;  // read, copies included; objects of other kinds
} PodList;

static Err grow(Arena *a, void **at, size_t size, uint32_t n, uint32_t *room) {
    if (n < *room) return ERR_OK;
    uint32_t more = *room > 0 ? 2 * *room : 64;
    void    *to = more > *room ? arena_try(a, more, size, 16) : NULL;
    if (to == NULL) return err_set(ERR_LIMIT, "no memory for %u objects", n);
    if (n > 0) memcpy(to, *at, n * size);
    *at = to;
    *room = more;
    return ERR_OK;
}

static Err add_pod(PodList *l, const char *place, const json_t *doc) {
    uint32_t before = l->r->rows.n, index = 0;
    void    *at = l->at;
    Pod      p;
    TRY(pod_read(place, doc, l->r->arena, &p));
    TRY(interner_add(&l->r->rows, p.uid, &index));
    l->pods++;
    if (l->r->rows.n == before) {
        if (!p.live || l->at[index].live) l->at[index] = p;
        return ERR_OK;
    }
    TRY(grow(l->r->arena, &at, sizeof p, l->n, &l->room));
    l->at = at;
    l->at[l->n++] = p;
    return ERR_OK;
}

#define TEXT(doc, ...) json_path_text(doc, (const char *const[]){__VA_ARGS__, NULL})

static bool is_one_of(const char *text, const char *const *words) {
    for (; text != NULL && *words != NULL; words++)
        if (strcmp(text, *words) == 0) return true;
    return false;
}

// Both APIs of events: v1 and events.k8s.io/v1.
static Err add_event(PodList *l, const char *place, const json_t *doc) {
    static const char *const starts[] = {"Scheduled", NULL};
    static const char *const ends[] = {
        "Killing", "Preempted", "Evicted", "Preempting", "TaintManagerEviction", NULL};
    const json_t *about = json_object_get(doc, "involvedObject");
    const char   *reason = TEXT(doc, "reason"), *when = TEXT(doc, "lastTimestamp");
    bool          start = is_one_of(reason, starts);
    void         *at = l->events;
    if (about == NULL) about = json_object_get(doc, "regarding");
    const char *uid = TEXT(about, "uid");
    if (uid == NULL || (!start && !is_one_of(reason, ends))) return ERR_OK;
    if (when == NULL) when = TEXT(doc, "eventTime");
    if (when == NULL) when = TEXT(doc, "deprecatedLastTimestamp");
    if (when == NULL) return ERR_OK;
    PodEvent e = {.start = start};
    if (!instant_read(when, &e.at))
        return err_set(ERR_PARSE,
                       "%s: event %s: '%.40s' is no time; write it as 2024-03-01T08:30:00Z", place,
                       reason, when);
    char *own = arena_try(l->r->arena, strlen(uid) + 1, 1, 1);
    if (own == NULL) return err_set(ERR_LIMIT, "%s: no memory for its events", place);
    memcpy(own, uid, strlen(uid) + 1);
    e.uid = own;
    TRY(grow(l->r->arena, &at, sizeof e, l->n_events, &l->events_room));
    l->events = at;
    l->events[l->n_events++] = e;
    return ERR_OK;
}

static Err add_object(PodList *l, const char *place, const char *kind, const json_t *doc) {
    const char *own = TEXT(doc, "kind");
    if (own != NULL) kind = own;
    if (!json_is_object(doc))
        return err_set(ERR_PARSE, "%s: is no object; a list has pods in its items", place);
    if (strcmp(kind, "Pod") == 0) return add_pod(l, place, doc);
    if (strcmp(kind, "Event") == 0) return add_event(l, place, doc);
    l->others++;
    return ERR_OK;
}

static Err add_items(PodList *l, const char *place, const char *kind, const json_t *items) {
    char   of[64], item[256];
    size_t n = strlen(kind) > 4 ? strlen(kind) - 4 : 0;
    (void)snprintf(of, sizeof of, "%.*s", (int)(n < sizeof of ? n : 0), kind);
    for (size_t i = 0; i < json_array_size(items); i++) {
        (void)snprintf(item, sizeof item, "%.200s: items[%zu]", place, i);
        TRY(add_object(l, item, of, json_array_get(items, i)));
    }
    return ERR_OK;
}

static Err add_document(PodList *l, const char *place, const json_t *doc) {
    const char   *kind = TEXT(doc, "kind");
    const json_t *items = json_is_array(doc) ? doc : json_object_get(doc, "items");
    if (json_is_array(doc)) return add_items(l, place, "", items);
    if (kind == NULL)
        return err_set(ERR_PARSE,
                       "%s: has no \"kind\"; give the output of kubectl get pods -A -o json",
                       place);
    size_t n = strlen(kind);
    if (n < 4 || strcmp(kind + n - 4, "List") != 0) return add_object(l, place, kind, doc);
    if (!json_is_array(items)) return err_set(ERR_PARSE, "%s: a list without \"items\"", place);
    return add_items(l, place, kind, items);
}

static Err read_documents(PodList *l, const char *text, size_t len) {
    const char *name = l->r->csv.name;
    size_t      at = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    char        place[256];
    for (uint32_t i = 0;; i++) {
        json_t *doc = NULL;
        TRY(json_parse_next(name, text, len, &at, &doc));
        if (doc == NULL) return ERR_OK;
        (void)snprintf(place, sizeof place, i > 0 ? "%.180s: document %u" : "%.180s", name, i + 1);
        Err e = add_document(l, place, doc);
        json_decref(doc);
        TRY(e);
    }
}

// What events say counts where a pod does not say it itself.
static void join_events(PodList *l) {
    for (uint32_t i = 0; i < l->n_events; i++) {
        const PodEvent *e = &l->events[i];
        uint32_t        index = interner_find(&l->r->rows, e->uid);
        if (index == STRING_MAP_NONE) continue;
        Pod *p = &l->at[index];
        if (e->start && p->began == JOB_UNKNOWN) p->began = e->at;
        if (!e->start && !p->live && p->ended == JOB_UNKNOWN) p->ended = e->at;
    }
}

static int by_group(const void *a, const void *b) {
    const Pod *x = a, *y = b;
    int        order = strcmp(x->group, y->group);
    return order != 0 ? order : strcmp(x->uid, y->uid);
}

// Why a pod did not run to its end; NULL: it did.
static const char *reason_to_skip(const Pod *p) {
    if (p->unread != NULL) return "pods with a part of a GPU";
    if (p->live) return "pods that have not ended";
    if (p->created == JOB_UNKNOWN) return "pods without a time of creation";
    if (p->began == JOB_UNKNOWN) return "pods that never started";
    if (p->ended == JOB_UNKNOWN) return "pods without a time of their end";
    return p->ended <= p->began ? "pods shorter than a second" : NULL;
}

typedef struct PodEdge {  // of a pod's run
    TimeNs     at;
    bool       end;
    const Pod *pod;
} PodEdge;

static int by_edge(const void *a, const void *b) {
    const PodEdge *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return y->end - x->end;
}

typedef struct Held {
    int64_t gpus, cores, memory;
} Held;

static void raise(int64_t *most, int64_t now) {
    if (now > *most) *most = now;
}

// The most of each resource that pods held at a time.
static Err take_peak(const TraceReader *r, const PodEdge *edges, uint32_t n, Job *j) {
    Held now = {0}, most = {0};
    for (uint32_t i = 0; i < n; i++) {
        const Pod *p = edges[i].pod;
        int64_t    sign = edges[i].end ? -1 : 1;
        now = (Held){now.gpus + sign * p->gpus, now.cores + sign * p->cores_milli,
                     now.memory + sign * p->memory_mib};
        raise(&most.gpus, now.gpus);
        raise(&most.cores, now.cores);
        raise(&most.memory, now.memory);
    }
    if (most.gpus > JOB_GPUS_MAX || most.cores > INT32_MAX || most.memory > INT32_MAX)
        return err_set(ERR_LIMIT, "%s: job %.120s: its pods request too much together", r->csv.name,
                       edges[0].pod->job);
    j->gpus = (uint32_t)most.gpus;
    j->cores_milli = (uint32_t)most.cores;
    j->memory_mib = (uint32_t)most.memory;
    j->gpu_milli = j->gpus > 0 ? 1000 : 0;
    return ERR_OK;
}

static Err take_pod(TraceReader *r, const Pod *p, Job *j, TimeNs *from, TimeNs *to) {
    if (j->submit == JOB_UNKNOWN || p->created < j->submit) j->submit = p->created;
    if (*from == JOB_UNKNOWN || p->began < *from) *from = p->began;
    if (p->ended > *to) *to = p->ended;
    if (p->priority > j->priority) j->priority = p->priority;
    r->column = "nodeSelector";
    if (p->gpu_type != NULL) TRY(trace_take_gpu_types(r, p->gpu_type, j));
    if (p->app != NULL && j->model == JOB_NONE) TRY(interner_add(&r->models, p->app, &j->model));
    return ERR_OK;
}

// Pods [n] of one job that ran.
static Err add_job(TraceReader *r, const Pod *pods, uint32_t n, PodEdge *edges) {
    JobList *l = r->list;
    Job     *j = &l->at[l->n];
    TimeNs   from = JOB_UNKNOWN, to = JOB_UNKNOWN;
    uint32_t runs = 0;
    *j = (Job){.submit = JOB_UNKNOWN,
               .priority = -INT32_MAX,
               .row = l->n,
               .model = JOB_NONE,
               .tenant = JOB_NONE};
    for (uint32_t i = 0; i < n; i++) {
        if (reason_to_skip(&pods[i]) != NULL) continue;
        TRY(take_pod(r, &pods[i], j, &from, &to));
        edges[2 * runs] = (PodEdge){pods[i].began, false, &pods[i]};
        edges[2 * runs++ + 1] = (PodEdge){pods[i].ended, true, &pods[i]};
    }
    if (runs == 0) return ERR_OK;
    qsort(edges, 2 * (size_t)runs, sizeof *edges, by_edge);
    TRY(take_peak(r, edges, 2 * runs, j));
    j->work = to - from;
    TRY(interner_add(&r->tenants, pods[0].space, &j->tenant));
    TRY(trace_name_job(r, pods[0].job, j));
    l->n++;
    return ERR_OK;
}

// A job of which a pod still runs has not ended; else pods that did not run are left out alone.
static Err add_group(TraceReader *r, const Pod *pods, uint32_t n, PodEdge *edges) {
    bool live = false;
    for (uint32_t i = 0; i < n; i++) live = live || pods[i].live;
    for (uint32_t i = 0; i < n; i++) {
        const char *reason = reason_to_skip(&pods[i]);
        if (reason == NULL && live) reason = "pods of jobs that have not ended";
        if (reason != NULL) trace_leave_out(r, reason, 1);
    }
    return live ? ERR_OK : add_job(r, pods, n, edges);
}

static Err read(TraceReader *r, const char *text, size_t len) {
    PodList l = {.r = r};
    TRY(read_documents(&l, text, len));
    if (l.n == 0)
        return err_set(ERR_PARSE, "%s: has no pods; kubectl get pods -A -o json lists them",
                       r->csv.name);
    join_events(&l);
    trace_leave_out(r, "earlier copies of a pod", l.pods - l.n);
    trace_leave_out(r, "objects that are neither pods nor events", l.others);
    qsort(l.at, l.n, sizeof *l.at, by_group);
    PodEdge *edges = arena_try_new(r->arena, PodEdge, 2 * (size_t)l.n);
    r->list->at = arena_try_new(r->arena, Job, l.n);
    if (edges == NULL || r->list->at == NULL)
        return err_set(ERR_LIMIT, "%s: no memory for %u pods", r->csv.name, l.n);
    for (uint32_t i = 0, n = 0; i < l.n; i += n) {
        for (n = 1; i + n < l.n && strcmp(l.at[i].group, l.at[i + n].group) == 0;) n++;
        TRY(add_group(r, &l.at[i], n, edges));
    }
    return ERR_OK;
}

const TraceFormat trace_kubernetes = {.name = "kubernetes", .dated = true, .read = read};
