#include "cluster/sim/job_event_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const char *const names[JOB_EVENT_KINDS] = {"end", "came", "start", "level", "stop"};

const char *job_event_name(JobEventKind k) { return names[k]; }

void job_event_log_open(JobEventLog *d, const ClusterRun *run, uint32_t only, Arena *own) {
    *d = (JobEventLog){.run = run, .arena = own, .only = only};
}

static JobEvent *add(JobEventLog *d, JobEvent e) {
    if (d->only != JOB_EVENT_ALL_JOBS && d->only != e.job) return NULL;
    if (d->n == d->room) {
        uint32_t  room = d->room > 0 ? 2 * d->room : 256;
        JobEvent *at = arena_try_new(d->arena, JobEvent, room);
        d->full = d->full || at == NULL;
        if (d->full) return NULL;
        if (d->n > 0) memcpy(at, d->at, d->n * sizeof *at);
        d->at = at;
        d->room = room;
    }
    e.order = d->n;
    d->at[d->n] = e;
    return &d->at[d->n++];
}

static void add_slices(JobEventLog *d, JobEvent *e, const ClusterTask *t) {
    ClusterSlice *s = arena_try_new(d->arena, ClusterSlice, t->n_slices);
    d->full = d->full || s == NULL;
    if (s == NULL) return;
    memcpy(s, t->slices, t->n_slices * sizeof *s);
    e->slices = s;
    e->n = t->n_slices;
}

void job_event_log_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    static const JobEventKind kinds[] = {[CLUSTER_START] = JOB_EVENT_START,
                                         [CLUSTER_PREEMPT] = JOB_EVENT_STOP,
                                         [CLUSTER_RESIZE] = JOB_EVENT_LEVEL};
    JobEventLog              *d = self;
    for (uint32_t i = 0; i < n; i++) {
        if (plan[i].verb == CLUSTER_WAKE) continue;
        const ClusterTask *t = &v->tasks[plan[i].task];
        JobEvent          *e = add(
                     d, (JobEvent){.at = v->now, .kind = kinds[plan[i].verb], .job = (uint32_t)t->job.id});
        if (e != NULL && e->kind != JOB_EVENT_STOP && t->n_slices > 0) add_slices(d, e, t);
    }
}

// Actions of a plan keep their order.
static int compare(const void *a, const void *b) {
    const JobEvent *x = a, *y = b;
    JobEventKind    p = x->kind < JOB_EVENT_START ? x->kind : JOB_EVENT_START;
    JobEventKind    q = y->kind < JOB_EVENT_START ? y->kind : JOB_EVENT_START;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (p != q) return p < q ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

Err job_event_log_close(JobEventLog *d, const ClusterResult *r) {
    for (uint32_t i = 0; i < r->n; i++) {
        add(d, (JobEvent){.at = d->run->jobs->at[i].submit, .kind = JOB_EVENT_CAME, .job = i});
        add(d, (JobEvent){.at = r->ends[i].finish, .kind = JOB_EVENT_END, .job = i});
    }
    if (d->full) return err_set(ERR_LIMIT, "no memory for the events of %u jobs", r->n);
    if (d->n > 0) qsort(d->at, d->n, sizeof *d->at, compare);
    return ERR_OK;
}

static void write_slice(const JobEventLog *d, const ClusterSlice *s, FILE *f) {
    fputs("{\"server\":", f);
    json_put_string(f, d->run->servers->at[s->server].name);
    fprintf(f, ",\"gpus\":%u,\"mask\":\"%" PRIx64 "\",\"gpu_milli\":%u,\"cores_milli\":%u,",
            s->gpus, s->mask, s->gpu_milli, s->cores_milli);
    fprintf(f, "\"memory_mib\":%u}", s->memory_mib);
}

void job_event_log_write(const JobEventLog *d, FILE *f) {
    for (uint32_t i = 0; i < d->n; i++) {
        const JobEvent *e = &d->at[i];
        fprintf(f, "{\"at\":%" PRId64 ",\"kind\":\"%s\",\"job\":", e->at, names[e->kind]);
        json_put_string(f, d->run->jobs->at[e->job].id);
        if (e->n > 0) fputs(",\"on\":[", f);
        for (uint32_t k = 0; k < e->n; k++) {
            if (k > 0) fputc(',', f);
            write_slice(d, &e->slices[k], f);
        }
        fputs(e->n > 0 ? "]}\n" : "}\n", f);
    }
}
