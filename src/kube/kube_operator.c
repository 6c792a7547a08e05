#include "kube/kube_operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kube/cluster_kube_int.h"
#include "kube/kube_bind_call.h"
#include "kube/kube_server.h"

enum { TEXT = 1024 };
static const TimeNs tick_ns = CLUSTER_SECOND;

struct KubeOperator {
    KubeOperatorOptions options;
    Loop               *loop;
    ClusterKube        *engine;
    KubeServer         *pages, *extender;
    KubeRecorder       *recorder;
    KubeMetrics         metrics;
    LoopTimer           tick;
    struct stat         read;    // the switch file when it was read last
    uint64_t            setups;  // of the last decision that was recorded
    bool                told_full;
    char                text[TEXT];  // of the last answer about a waiting pod
};

// Hooks.

static void record_decision(KubeOperator *x, const KubeDecision *d) {
    const ClusterKube *k = x->engine;
    if (x->recorder == NULL) return;
    // A leader that begins anew begins with nothing, and so does what is recorded of it.
    if (k->view.setups < x->setups) kube_recorder_header(x->recorder, x->options.head);
    x->setups = k->view.setups;
    KubeRecordView v = {d->picture, k->view.setups, d->view->alive_ns, d->view->busy_ns};
    kube_recorder_decision(x->recorder, &v, d->plan, d->n);
}

static void decided(void *self, const KubeDecision *d) {
    KubeOperator *x = self;
    kube_metrics_time(&x->metrics, KUBE_TIME_ALGORITHM, (double)d->took / 1e9);
    record_decision(x, d);
    if (x->options.next.decided != NULL) x->options.next.decided(x->options.next.self, d);
}

static void count_note(KubeMetrics *m, const KubeNote *n) {
    bool gang = n->job->gang;
    switch (n->kind) {
    case KUBE_NOTE_STARTED:
    case KUBE_NOTE_MOVED:
    case KUBE_NOTE_OWN:
        if (gang) kube_metrics_count(m, KUBE_COUNT_GROUP_SCHEDULED);
        break;
    case KUBE_NOTE_REFUSED:
        kube_metrics_count(m, KUBE_COUNT_ATTEMPT_UNSCHEDULABLE);
        if (gang) kube_metrics_count(m, KUBE_COUNT_GROUP_UNSCHEDULABLE);
        break;
    case KUBE_NOTE_EVICTED:
        kube_metrics_count(m, KUBE_COUNT_PREEMPTION);
        kube_metrics_time(m, KUBE_TIME_VICTIMS, n->job->n_bound);
        break;
    default: break;
    }
}

static const char *const note_names[KUBE_NOTES] = {"started", "moved",       "placed", "refused",
                                                   "evicted", "not_evicted", "resized"};

const char *kube_note_name(KubeNoteKind k) { return note_names[k]; }

const char *kube_fit_reason_text(KubeFitReason r) {
    static const char *const texts[] = {
#define X(id, text) text,
#include "kube/kube_fit_reason.def"
#undef X
    };
    return r == FIT_INSUFFICIENT ? "Insufficient resources" : texts[r];
}

static void noted(void *self, TimeNs at, const KubeNote *n) {
    KubeOperator     *x = self;
    const char       *why = n->text != NULL  ? n->text
                            : n->why != NULL ? kube_fit_reason_text(n->why->reason)
                                             : "";
    KubeRecordOutcome o = {.what = note_names[n->kind],
                           .namespace_name = n->job->namespace_name,
                           .pod = n->job->name,
                           .result = why,
                           .done = n->kind != KUBE_NOTE_REFUSED && n->kind != KUBE_NOTE_NOT_EVICTED,
                           .at = at};
    count_note(&x->metrics, n);
    if (x->recorder != NULL) kube_recorder_outcome(x->recorder, &o);
    if (x->options.next.noted != NULL) x->options.next.noted(x->options.next.self, at, n);
}

// The job whose pod it is; NULL: not known.
static KubeJob *job_of(const ClusterKube *k, const char *namespace_name, const char *pod) {
    for (uint32_t i = 0; i < k->jobs.n_slots; i++) {
        KubeJob *j = k->jobs.at[i];
        if (j == NULL || strcmp(j->namespace_name, namespace_name) != 0) continue;
        if (!j->gang && strcmp(j->name, pod) != 0) continue;
        for (uint32_t m = 0; m < j->n; m++)
            if (strcmp(j->members[m].name, pod) == 0) return j;
    }
    return NULL;
}

static void count_bound(KubeOperator *x, TimeNs at, const KubeWritten *w) {
    const ClusterKube *k = x->engine;
    const KubeJob     *j = k->open ? job_of(k, w->namespace_name, w->name) : NULL;
    uint32_t           attempts = j != NULL ? j->refusals + 1 : 1;
    TimeNs             from = j != NULL && j->seen_at > 0 ? j->seen_at : at - w->took;
    kube_metrics_count(&x->metrics, KUBE_COUNT_ATTEMPT_SCHEDULED);
    kube_metrics_count(&x->metrics, KUBE_COUNT_SCHEDULED_PODS);
    kube_metrics_time(&x->metrics, KUBE_TIME_ATTEMPT, (double)w->took / 1e9);
    kube_metrics_time(&x->metrics, KUBE_TIME_POD_ATTEMPTS, attempts);
    kube_metrics_sli(&x->metrics, attempts, (double)(at - from) / 1e9);
}

static KubeCounter bind_cause(const char *fault) {
    static const struct {
        const char *words;
        KubeCounter count;
    } causes[] = {
        {"another node", KUBE_COUNT_CONFLICT_ASSIGNED},
        {"it is bound", KUBE_COUNT_CONFLICT_ASSIGNED},
        {"being deleted", KUBE_COUNT_CONFLICT_DELETED},
        {"it is gone", KUBE_COUNT_CONFLICT_DELETED},
        {"made anew", KUBE_COUNT_CONFLICT_REPLACED},
        {"gated", KUBE_COUNT_CONFLICT_GATED},
        {"status 403", KUBE_COUNT_CONFLICT_FORBIDDEN},
        {"status ", KUBE_COUNT_CONFLICT_SERVER},
    };
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (strstr(fault, causes[i].words) != NULL) return causes[i].count;
    return KUBE_COUNT_CONFLICT_CHANGED;
}

static void count_fault(KubeOperator *x, const KubeWritten *w) {
    KubeMetrics *m = &x->metrics;
    if (w->kind == KUBE_WRITE_BIND) {
        kube_metrics_count(m, KUBE_COUNT_ATTEMPT_ERROR);
        kube_metrics_count(m, bind_cause(w->fault));
    } else if (w->kind == KUBE_WRITE_EVICT) {
        kube_metrics_count(m, strstr(w->fault, "status 429") != NULL ? KUBE_COUNT_EVICTION_BUDGET
                                                                     : KUBE_COUNT_EVICTION_ERROR);
    } else if (w->kind == KUBE_WRITE_RESIZE) {
        bool refused = strstr(w->fault, "status 4") != NULL;
        kube_metrics_count(m, refused ? KUBE_COUNT_RESIZE_REFUSED : KUBE_COUNT_RESIZE_ERROR);
    }
}

static void count_written(KubeOperator *x, TimeNs at, const KubeWritten *w) {
    if (!w->done)
        count_fault(x, w);
    else if (w->kind == KUBE_WRITE_BIND)
        count_bound(x, at, w);
    else if (w->kind == KUBE_WRITE_EVICT)
        kube_metrics_count(&x->metrics, KUBE_COUNT_EVICTION_DONE);
    else if (w->kind == KUBE_WRITE_RESIZE)
        kube_metrics_count(&x->metrics, KUBE_COUNT_RESIZE_DONE);
}

static void written(void *self, TimeNs at, const KubeWritten *w) {
    static const char *const names[KUBE_WRITE_KINDS] = {"bind", "evict", "resize", "condition",
                                                        "event"};
    KubeOperator            *x = self;
    count_written(x, at, w);
    KubeRecordOutcome o = {.what = names[w->kind],
                           .namespace_name = w->namespace_name,
                           .pod = w->name,
                           .node = w->node,
                           .result = w->done ? "done" : w->fault,
                           .done = w->done,
                           .at = at,
                           .took = w->took};
    if (x->recorder != NULL && w->kind < KUBE_WRITE_CONDITION)
        kube_recorder_outcome(x->recorder, &o);
    if (x->options.next.written != NULL) x->options.next.written(x->options.next.self, at, w);
}

static void ended(void *self, TimeNs at, const KubeJob *j, const ClusterTask *t) {
    KubeOperator      *x = self;
    const ClusterKube *k = x->engine;
    uint32_t class = t->job.class;
    KubeRecordJob r = {
        .namespace_name = j->namespace_name,
        .name = j->name,
        .model = class < k->beliefs.profiles.n ? k->beliefs.profiles.at[class].name : "",
        .tenant = t->job.tenant < k->jobs.n_tenants ? k->jobs.tenants[t->job.tenant] : "",
        .submit = j->first,
        .start = t->held > 0 ? at - t->held : 0,
        .end = at,
        .work_s = j->work_s,
        .gpus = t->job.gpus,
        .gpu_milli = t->job.gpu_milli,
        .cores_milli = t->job.cores_milli,
        .memory_mib = t->job.memory_mib,
        .preemptions = t->preemptions,
        .priority = t->job.priority,
        .succeeded = j->succeeded > 0,
    };
    if (x->recorder != NULL) kube_recorder_job(x->recorder, &r);
    if (x->options.next.ended != NULL) x->options.next.ended(x->options.next.self, at, j, t);
}

ClusterKubeHooks kube_operator_hooks(KubeOperator *x) {
    return (ClusterKubeHooks){decided, noted, written, ended, x};
}

// What the pages ask.

static KubeState *state(void *self) {
    const KubeOperator *x = self;
    return x->engine->open ? x->engine->state : NULL;
}

static const char *missing_kind(const ClusterKube *k) {
    for (uint32_t i = 0; i < KUBE_KINDS; i++) {
        const KubeWatchOf *w = &k->watches[i];
        if (w->watch != NULL && !w->listed && !w->missing) return kube_kind_name((KubeKind)i);
    }
    return NULL;
}

// A standby watches nothing: it lists everything when it leads.
static void standing(void *self, KubeStanding *out) {
    const KubeOperator *x = self;
    const ClusterKube  *k = x->engine;
    const char         *holder = k->lease != NULL ? kube_lease_holder(k->lease) : "";
    bool                leads = k->leads;
    *out = (KubeStanding){.leader = leads,
                          .synced = leads ? k->open && cluster_kube_synced(k) : holder[0] != '\0',
                          .holder = holder,
                          .dry_run = x->options.dry_run};
    if (!out->synced) out->missing = leads ? missing_kind(k) : "the lease";
}

static void count_jobs(const ClusterKube *k, KubeGauges *g) {
    for (uint32_t i = 0; i < k->jobs.n_slots; i++) {
        const KubeJob *j = k->jobs.at[i];
        if (j == NULL || j->n_free == 0) continue;
        if (j->retry_at > k->jobs.now)
            g->backoff += j->n_free;
        else if (j->phase == KUBE_JOB_INCOMPLETE || j->refusals > 0)
            g->unschedulable += j->n_free;
        else
            g->active += j->n_free;
        if (j->phase == KUBE_JOB_READY && j->unfit < KUBE_FIT_REASONS)
            g->unfit[j->unfit] += j->n_free;
    }
}

static void count_objects(const ClusterKube *k, KubeGauges *g) {
    KubeNode *const *nodes;
    KubePod *const  *pods;
    g->nodes = kube_state_nodes(k->state, &nodes);
    g->pods = kube_state_pods(k->state, &pods);
    for (uint32_t i = 0; i < g->pods; i++) {
        const KubePodInfo *p = kube_pod_info(pods[i]);
        g->assumed += kube_state_assumed(k->state, pods[i]) != NULL;
        g->gated += p->ours && p->gated && p->node == NULL;
    }
}

static void gauges(void *self, KubeGauges *out) {
    const KubeOperator *x = self;
    const ClusterKube  *k = x->engine;
    *out = (KubeGauges){.profile = x->options.scheduler_name,
                        .lease = x->options.lease_name,
                        .host = x->options.server,
                        .api = k->api,
                        .leader = k->leads,
                        .frozen = k->rules.act != KUBE_ACT_ALL,
                        .now = clock_monotonic_ns()};
    if (!k->open) return;
    for (uint32_t i = 0; i < KUBE_KINDS; i++) {
        out->watched[i] = k->watches[i].watch != NULL;
        if (out->watched[i]) out->watches[i] = kube_watch_counts(k->watches[i].watch);
    }
    count_jobs(k, out);
    count_objects(k, out);
}

static uint32_t place_of(const ClusterKube *k, uint32_t slot) {
    for (uint32_t i = 0; i < k->jobs.n_waiting; i++)
        if (k->jobs.waiting[i] == slot) return i + 1;
    return 0;
}

static const char *queue_of(const ClusterKube *k, const KubeJob *j) {
    if (j->phase == KUBE_JOB_INCOMPLETE) return "unschedulable";
    if (j->retry_at > k->jobs.now) return "backoff";
    return j->refusals > 0 ? "unschedulable" : "active";
}

static void put_beliefs(const ClusterKube *k, const KubeJob *j, KubeWait *out) {
    const ClusterTask *t = &k->jobs.tasks[j->slot];
    uint32_t class = t->job.class;
    out->policy = k->options.policy->name;
    out->class_name = class < k->beliefs.profiles.n ? k->beliefs.profiles.at[class].name : NULL;
    out->left = t->left;
    out->left_sd = t->spread.left_sd;
    out->rate = t->state == CLUSTER_RUNNING ? t->rate : 0;
    out->rate_sd = t->spread.rate_sd;
    out->measured = t->measured;
    out->reports = j->reported_at > 0 ? "reports of the job" : "CPU and the history of like jobs";
}

static void wait_of(void *self, const KubePod *p, KubeWait *out) {
    KubeOperator      *x = self;
    ClusterKube       *k = x->engine;
    const KubePodInfo *i = kube_pod_info(p);
    const char        *reason;
    *out = (KubeWait){.left = -1};
    if (!i->ours || kube_jobs_update(&k->jobs, k->state, cluster_kube_now(k)) != ERR_OK) return;
    KubeJob *j = job_of(k, i->namespace_name, i->name);
    if (j == NULL) return;
    cluster_kube_waiting(k, j, &reason, x->text, sizeof x->text);
    out->verdict = x->text[0] != '\0' ? x->text : NULL;
    out->queue = i->node != NULL ? NULL : i->gated ? "gated" : queue_of(k, j);
    out->place = place_of(k, j->slot);
    out->of = k->jobs.n_waiting;
    out->attempts = j->refusals;
    out->waited = k->jobs.now - j->first;
    out->retry_in = j->retry_at > k->jobs.now ? j->retry_at - k->jobs.now : 0;
    out->gang_pods = j->n;
    out->gang_least = j->least;
    put_beliefs(k, j, out);
}

static void report(void *self, const KubeReport *r, TimeNs now) {
    KubeOperator *x = self;
    kube_state_progress(r->pod, r->iterations, r->rate, now);
    cluster_kube_changed(x->engine);
}

// The extender.

static bool has_bit(const KubeState *s, const uint64_t *bits, const KubeNode *node) {
    KubeNode *const *nodes;
    uint32_t         n = kube_state_nodes(s, &nodes);
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] == node) return (bits[i / 64] >> i % 64 & 1) != 0;
    return false;
}

// Where it was assumed stays its place. Otherwise the engine decides now, and its plan says where.
static KubeNode *place(void *self, KubePod *p, KubeNode *was, const uint64_t *allowed,
                       char why[EXTENDER_WHY]) {
    KubeOperator      *x = self;
    ClusterKube       *k = x->engine;
    const KubePodInfo *i = kube_pod_info(p);
    KubeWait           w;
    if (!i->ours) {
        (void)snprintf(why, EXTENDER_WHY,
                       "cotenant's --scheduler-name is %.80s, and the pod's schedulerName is not",
                       x->options.scheduler_name);
        return NULL;
    }
    if (was != NULL && has_bit(k->state, allowed, was)) return was;
    cluster_kube_decide(k);
    const KubeNode *now = kube_state_assumed(k->state, p);
    KubeNode *node = now != NULL ? kube_state_node(k->state, kube_node_info(now)->name) : NULL;
    if (node != NULL) {
        kube_state_forget(k->state, p);
        return has_bit(k->state, allowed, node) ? node : kube_extender_best(k->state, p, allowed);
    }
    wait_of(x, p, &w);
    if (w.verdict != NULL) (void)snprintf(why, EXTENDER_WHY, "%.250s", w.verdict);
    return NULL;
}

static void bind_pod(void *self, KubePod *p, KubeNode *n, KubeBinding *b) {
    KubeOperator *x = self;
    kube_bind_call(x->engine->api, kube_pod_info(p), kube_node_info(n)->name, b);
}

// Life.

static void flush(KubeOperator *x) {
    if (x->recorder == NULL) return;
    kube_recorder_flush(x->recorder);
    if (kube_recorder_full(x->recorder) && !x->told_full) {
        log_with(x->options.log, LOG_WARN, "records are full; decisions are no longer recorded",
                 log_text("file", x->options.records));
        x->told_full = true;
    }
}

// True: the file is another one, or was written, since the last call. A ConfigMap's is replaced.
static bool switch_changed(KubeOperator *x) {
    struct stat now;
    if (x->options.switch_file == NULL || stat(x->options.switch_file, &now) != 0) return false;
    bool same = now.st_ino == x->read.st_ino && now.st_dev == x->read.st_dev &&
                now.st_size == x->read.st_size && now.st_mtim.tv_sec == x->read.st_mtim.tv_sec &&
                now.st_mtim.tv_nsec == x->read.st_mtim.tv_nsec;
    x->read = now;
    return !same;
}

static void tick(void *self) {
    KubeOperator *x = self;
    flush(x);
    if (switch_changed(x) && cluster_kube_reload(x->engine) != ERR_OK)
        log_with(x->options.log, LOG_ERROR, "not reloaded: nothing has changed",
                 log_text("why", err_why()));
    if (loop_arm(x->loop, &x->tick, clock_monotonic_ns() + tick_ns) != ERR_OK)
        log_with(x->options.log, LOG_ERROR, "timer failed", log_text("why", err_why()));
}

Err kube_operator_create(KubeOperator **out, const KubeOperatorOptions *o) {
    KubeOperator *x = calloc(1, sizeof *x);
    if (x == NULL) return err_set(ERR_LIMIT, "no memory for pages and records");
    x->options = *o;
    x->tick = (LoopTimer){.fire = tick, .self = x};
    if (o->records != NULL) {
        Err e = kube_recorder_open(&x->recorder, o->records, 0, o->head);
        if (e != ERR_OK) {
            free(x);
            return e;
        }
    }
    *out = x;
    return ERR_OK;
}

static KubeSource source_of(KubeOperator *x) {
    return (KubeSource){.extender = {.place = place, .assumes = true, .self = x},
                        .metrics = &x->metrics,
                        .state = state,
                        .standing = standing,
                        .gauges = gauges,
                        .wait = wait_of,
                        .report = report,
                        .bind = bind_pod,
                        .self = x};
}

static Err open_server(KubeOperator *x, const char *address, bool extender, KubeServer **out) {
    KubeServerOptions o = {.address = address, .extender = extender};
    KubeSource        s = source_of(x);
    if (address == NULL) return ERR_OK;
    TRY(kube_server_open(out, x->loop, &o, &s));
    log_with(x->options.log, LOG_INFO, extender ? "extender listens" : "listening",
             log_text("address", kube_server_address(*out)));
    return ERR_OK;
}

Err kube_operator_start(KubeOperator *x, Loop *l, ClusterKube *k) {
    x->loop = l;
    x->engine = k;
    Err e = open_server(x, x->options.listen, false, &x->pages);
    if (e != ERR_OK && !x->options.may_listen) return e;
    if (e != ERR_OK)
        log_with(x->options.log, LOG_WARN, "no pages: give --listen", log_text("why", err_why()));
    TRY(open_server(x, x->options.extender, true, &x->extender));
    (void)switch_changed(x);
    return loop_arm(l, &x->tick, clock_monotonic_ns() + tick_ns);
}

void kube_operator_stop(KubeOperator *x) {
    if (x == NULL || x->loop == NULL) return;
    kube_server_close(x->pages);
    kube_server_close(x->extender);
    x->pages = x->extender = NULL;
    loop_disarm(x->loop, &x->tick);
}

Err kube_operator_destroy(KubeOperator *x) {
    if (x == NULL) return ERR_OK;
    Err e = kube_recorder_close(x->recorder);
    free(x);
    return e;
}
