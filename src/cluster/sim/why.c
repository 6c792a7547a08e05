#include "cluster/sim/why.h"

#include <stdlib.h>
#include <string.h>

#include "placement/placement.h"

struct Why {
    const ClusterRun *run;
    const ClusterEnd *ends;
    ClusterSetup      setup;
    FreeResources     free;
    uint32_t          job, slot;
    bool              arrived, ended, waits;
    WhyReason         reason;  // valid since `at`, while the job waits
    TimeNs            at;
    TimeNs            by[WHY_REASONS];
    WhyLack           lack[WHY_REASONS];
    TimeNs           *blocked_ns[3];  // [jobs] by reason: BEHIND, STOPPED, HEAD
    uint32_t         *blockers;       // [jobs] that block it since `at`
    uint32_t          n_blockers;
    WhyBlocker       *list;  // [3 jobs]
};

static const char *const names[WHY_REASONS] = {
#define X(id, name, about) name,
#include "cluster/sim/why_reason.def"
#undef X
};

static const char *const abouts[WHY_REASONS] = {
#define X(id, name, about) about,
#include "cluster/sim/why_reason.def"
#undef X
};

const char *why_name(WhyReason r) { return names[r]; }
const char *why_about(WhyReason r) { return abouts[r]; }

Err why_open(const ClusterRun *run, uint32_t job, const ClusterEnd *ends, Arena *own, Why **out) {
    size_t n = run->jobs->n;
    Why   *w = arena_try_new(own, Why, 1);
    if (w == NULL) return err_set(ERR_LIMIT, "no memory to explain a job");
    *w = (Why){.run = run, .ends = ends, .job = job, .slot = CLUSTER_NONE};
    TRY(cluster_setup(run, own, &w->setup));
    TRY(placement_alloc(&w->free, &w->setup, own));
    for (uint32_t i = 0; i < 3; i++) w->blocked_ns[i] = arena_try_new(own, TimeNs, n);
    w->blockers = arena_try_new(own, uint32_t, n);
    w->list = arena_try_new(own, WhyBlocker, 3 * n);
    if (w->blocked_ns[0] == NULL || w->blocked_ns[1] == NULL || w->blocked_ns[2] == NULL ||
        w->blockers == NULL || w->list == NULL)
        return err_set(ERR_LIMIT, "no memory to explain a job among %zu", n);
    for (uint32_t r = 0; r < WHY_REASONS; r++) w->lack[r] = (WhyLack){-1, -1};
    *out = w;
    return ERR_OK;
}

static const ClusterTask *find(Why *w, const ClusterView *v) {
    const uint32_t *queues[] = {v->waiting, v->running};
    const uint32_t  n[] = {v->n_waiting, v->n_running};
    if (v->now < w->run->jobs->at[w->job].submit) return NULL;
    for (uint32_t l = 0; l < 2 && w->slot == CLUSTER_NONE; l++)
        for (uint32_t i = 0; i < n[l]; i++)
            if (v->tasks[queues[l][i]].job.id == w->job) w->slot = queues[l][i];
    if (w->slot == CLUSTER_NONE) return NULL;
    const ClusterTask *t = &v->tasks[w->slot];
    w->ended = t->job.id != w->job || t->state == CLUSTER_GONE;
    return w->ended ? NULL : t;
}

// Charges the time since the last decision to the reason found then.
static void charge(Why *w, TimeNs now) {
    TimeNs ns = now - w->at;
    w->by[w->reason] += ns;
    uint32_t as = w->reason == WHY_BEHIND ? 0 : w->reason == WHY_STOPPED ? 1 : 2;
    for (uint32_t i = 0; i < w->n_blockers; i++) w->blocked_ns[as][w->blockers[i]] += ns;
    w->n_blockers = 0;
}

// Whether it fits without the jobs started while it waited; these become the blockers.
static bool fits_without(Why *w, const ClusterView *v, const ClusterTask *t) {
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *other = &v->tasks[v->running[i]];
        if (other->since < t->since || other->entry < t->entry) continue;
        placement_release(&w->free, other);
        w->blockers[w->n_blockers++] = (uint32_t)other->job.id;
    }
    if (w->n_blockers > 0 && placement_fits(&w->free, &t->job)) return true;
    w->n_blockers = 0;
    placement_open(&w->free, v);
    return false;
}

// A waiting job that does not fit and was started, or queued, before this one: head of the line.
static bool behind_head(Why *w, const ClusterView *v, const ClusterTask *t) {
    bool     first = w->ends != NULL && t->preemptions == 0;
    uint32_t head = CLUSTER_NONE;
    for (uint32_t i = 0; i < v->n_waiting; i++) {
        const ClusterTask *other = &v->tasks[v->waiting[i]];
        uint32_t           id = (uint32_t)other->job.id;
        if (id == w->job) continue;
        bool ahead = other->entry < t->entry;
        if (first) {
            TimeNs theirs = w->ends[id].start, own = w->ends[w->job].start;
            ahead = theirs < own || (theirs == own && ahead);
            if (other->preemptions > 0) ahead = other->entry < t->entry;
        }
        if (!ahead || placement_fits(&w->free, &other->job)) continue;
        if (head == CLUSTER_NONE || (first && w->ends[id].start < w->ends[head].start)) head = id;
    }
    if (head == CLUSTER_NONE) return false;
    w->blockers[w->n_blockers++] = head;
    return true;
}

typedef struct Relax {  // constraints that a query ignores
    bool type, cores, memory, corunners;
} Relax;

static bool fits_relaxed(Why *w, const ClusterJob *j, Relax without) {
    ClusterJob x = *j;
    if (without.type) x.gpu_types = 0;
    if (without.type) x.servers = NULL;
    if (without.cores) x.cores_milli = 0;
    if (without.memory) x.memory_mib = 0;
    if (without.corunners) x.class = CLUSTER_NONE;
    return placement_fits(&w->free, &x);
}

static WhyReason shortage(Why *w, const ClusterJob *j) {
    if (cluster_is_restricted(j) && fits_relaxed(w, j, (Relax){.type = true})) return WHY_TYPE;
    if (placement_short_gpus(&w->free, j) > 0) return WHY_GPUS;
    if (fits_relaxed(w, j, (Relax){.corunners = true})) return WHY_PAIR;
    if (!fits_relaxed(w, j, (Relax){.corunners = true, .cores = true, .memory = true}))
        return WHY_SCATTERED;
    bool cores = fits_relaxed(w, j, (Relax){.corunners = true, .cores = true});
    bool memory = fits_relaxed(w, j, (Relax){.corunners = true, .memory = true});
    return memory && !cores ? WHY_MEMORY : WHY_CORES;
}

static void note_shortage(Why *w, WhyReason r, const ClusterJob *j) {
    WhyLack *l = &w->lack[r];
    int64_t  lacks = r == WHY_GPUS        ? placement_short_gpus(&w->free, j)
                     : r == WHY_SCATTERED ? placement_short_together(&w->free, j)
                     : r == WHY_CORES     ? placement_short_cores(&w->free, j)
                     : r == WHY_MEMORY    ? placement_short_memory(&w->free, j)
                                          : -1;
    if (lacks < 0) return;
    if (!w->arrived) l->first = lacks;
    if (l->least < 0 || lacks < l->least) l->least = lacks;
}

static WhyReason reason_of(Why *w, const ClusterView *v, const ClusterTask *t) {
    placement_open(&w->free, v);
    if (placement_fits(&w->free, &t->job)) return behind_head(w, v, t) ? WHY_HEAD : WHY_POLICY;
    WhyReason lacks = shortage(w, &t->job);
    note_shortage(w, lacks, &t->job);
    if (fits_without(w, v, t)) return t->preemptions > 0 ? WHY_STOPPED : WHY_BEHIND;
    return lacks;
}

void why_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    (void)plan;
    (void)n;
    Why *w = self;
    if (w->ended) return;
    const ClusterTask *t = find(w, v);
    if (t != NULL && !w->arrived) {
        w->at = w->run->jobs->at[w->job].submit;
        w->reason = WHY_ROUND;
        w->waits = true;
    }
    if (w->waits) charge(w, v->now);
    w->waits = t != NULL && t->state == CLUSTER_WAITING;
    if (w->waits) {
        w->reason = reason_of(w, v, t);
        w->at = v->now;
    }
    w->arrived = w->arrived || t != NULL;
}

TimeNs why_for(const Why *w, WhyReason r) { return w->by[r]; }

TimeNs why_waited(const Why *w) {
    TimeNs sum = 0;
    for (uint32_t r = 0; r < WHY_REASONS; r++) sum += w->by[r];
    return sum;
}

WhyReason why_most(const Why *w) {
    uint32_t most = 0;
    for (uint32_t r = 1; r < WHY_REASONS; r++)
        if (w->by[r] > w->by[most]) most = r;
    return (WhyReason)most;
}

WhyLack why_lack(const Why *w, WhyReason r) { return w->lack[r]; }

static int longest(const void *a, const void *b) {
    const WhyBlocker *x = a, *y = b;
    if (x->ns != y->ns) return x->ns > y->ns ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

const WhyBlocker *why_blockers(const Why *w, uint32_t *n) {
    static const WhyReason as[] = {WHY_BEHIND, WHY_STOPPED, WHY_HEAD};
    *n = 0;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < w->run->jobs->n; k++)
            if (w->blocked_ns[i][k] > 0)
                w->list[(*n)++] = (WhyBlocker){k, as[i], w->blocked_ns[i][k]};
    if (*n > 0) qsort(w->list, *n, sizeof *w->list, longest);
    return w->list;
}
