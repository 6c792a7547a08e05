#include "cluster/sim/why.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/sim/placement_probe.h"

struct Why {
    const ClusterRun *run;
    const ClusterEnd *ends;
    ClusterSetup      setup;
    PlacementProbe    spot;
    uint32_t          job, slot;
    bool              came, gone, waits;
    WhyReason         reason;  // since `at`, while it waits
    TimeNs            at;
    TimeNs            by[WHY_REASONS];
    WhyLack           lack[WHY_REASONS];
    TimeNs           *rival_ns[3];  // [jobs] as BEHIND, STOPPED, HEAD
    uint32_t         *rivals;       // [jobs] in its way since `at`
    uint32_t          n_rivals;
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
    TRY(placement_probe_init(&w->spot, &w->setup, own));
    for (uint32_t i = 0; i < 3; i++) w->rival_ns[i] = arena_try_new(own, TimeNs, n);
    w->rivals = arena_try_new(own, uint32_t, n);
    w->list = arena_try_new(own, WhyBlocker, 3 * n);
    if (w->rival_ns[0] == NULL || w->rival_ns[1] == NULL || w->rival_ns[2] == NULL ||
        w->rivals == NULL || w->list == NULL)
        return err_set(ERR_LIMIT, "no memory to explain a job among %zu", n);
    for (uint32_t r = 0; r < WHY_REASONS; r++) w->lack[r] = (WhyLack){-1, -1};
    *out = w;
    return ERR_OK;
}

static const ClusterTask *find(Why *w, const ClusterView *v) {
    const uint32_t *lanes[] = {v->waiting, v->running};
    const uint32_t  n[] = {v->n_waiting, v->n_running};
    if (v->now < w->run->jobs->at[w->job].submit) return NULL;
    for (uint32_t l = 0; l < 2 && w->slot == CLUSTER_NONE; l++)
        for (uint32_t i = 0; i < n[l]; i++)
            if (v->tasks[lanes[l][i]].job.id == w->job) w->slot = lanes[l][i];
    if (w->slot == CLUSTER_NONE) return NULL;
    const ClusterTask *t = &v->tasks[w->slot];
    w->gone = t->job.id != w->job || t->state == CLUSTER_GONE;
    return w->gone ? NULL : t;
}

// Time that passed goes to the reason that there was.
static void settle(Why *w, TimeNs now) {
    TimeNs ns = now - w->at;
    w->by[w->reason] += ns;
    uint32_t as = w->reason == WHY_BEHIND ? 0 : w->reason == WHY_STOPPED ? 1 : 2;
    for (uint32_t i = 0; i < w->n_rivals; i++) w->rival_ns[as][w->rivals[i]] += ns;
    w->n_rivals = 0;
}

// Who started while it waited, as if they had not.
static bool fits_without(Why *w, const ClusterView *v, const ClusterTask *t) {
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *other = &v->tasks[v->running[i]];
        if (other->since < t->since || other->entry < t->entry) continue;
        placement_probe_give(&w->spot, other);
        w->rivals[w->n_rivals++] = (uint32_t)other->job.id;
    }
    if (w->n_rivals > 0 && placement_probe_fits(&w->spot, v, &t->job, (PlacementRelax){0}))
        return true;
    w->n_rivals = 0;
    placement_probe_open(&w->spot, v);
    return false;
}

// One that waits, finds no place, and was started before this one, or came before it.
static bool blocked(Why *w, const ClusterView *v, const ClusterTask *t) {
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
        if (!ahead || placement_probe_fits(&w->spot, v, &other->job, (PlacementRelax){0})) continue;
        if (head == CLUSTER_NONE || (first && w->ends[id].start < w->ends[head].start)) head = id;
    }
    if (head == CLUSTER_NONE) return false;
    w->rivals[w->n_rivals++] = head;
    return true;
}

static WhyReason shortage(Why *w, const ClusterView *v, const ClusterJob *j) {
    PlacementProbe *s = &w->spot;
    if (j->gpu_types != 0 && placement_probe_fits(s, v, j, (PlacementRelax){.any_type = true}))
        return WHY_TYPE;
    if (placement_probe_lacks_gpus(s, j) > 0) return WHY_GPUS;
    if (placement_probe_fits(s, v, j, (PlacementRelax){.any_company = true})) return WHY_PAIR;
    if (!placement_probe_fits(
            s, v, j, (PlacementRelax){.any_company = true, .no_cores = true, .no_memory = true}))
        return WHY_SCATTERED;
    bool cores =
        placement_probe_fits(s, v, j, (PlacementRelax){.any_company = true, .no_cores = true});
    bool memory =
        placement_probe_fits(s, v, j, (PlacementRelax){.any_company = true, .no_memory = true});
    return memory && !cores ? WHY_MEMORY : WHY_CORES;
}

static void note_lack(Why *w, WhyReason r, const ClusterJob *j) {
    WhyLack *l = &w->lack[r];
    int64_t  lacks = r == WHY_GPUS        ? placement_probe_lacks_gpus(&w->spot, j)
                     : r == WHY_SCATTERED ? placement_probe_lacks_together(&w->spot, j)
                     : r == WHY_CORES     ? placement_probe_lacks_cores(&w->spot, j)
                     : r == WHY_MEMORY    ? placement_probe_lacks_memory(&w->spot, j)
                                          : -1;
    if (lacks < 0) return;
    if (!w->came) l->first = lacks;
    if (l->least < 0 || lacks < l->least) l->least = lacks;
}

static WhyReason reason_of(Why *w, const ClusterView *v, const ClusterTask *t) {
    placement_probe_open(&w->spot, v);
    if (placement_probe_fits(&w->spot, v, &t->job, (PlacementRelax){0}))
        return blocked(w, v, t) ? WHY_HEAD : WHY_POLICY;
    WhyReason lacks = shortage(w, v, &t->job);
    note_lack(w, lacks, &t->job);
    if (fits_without(w, v, t)) return t->preemptions > 0 ? WHY_STOPPED : WHY_BEHIND;
    return lacks;
}

void why_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    (void)plan;
    (void)n;
    Why *w = self;
    if (w->gone) return;
    const ClusterTask *t = find(w, v);
    if (t != NULL && !w->came) {
        w->at = w->run->jobs->at[w->job].submit;
        w->reason = WHY_ROUND;
        w->waits = true;
    }
    if (w->waits) settle(w, v->now);
    w->waits = t != NULL && t->state == CLUSTER_WAITING;
    if (w->waits) {
        w->reason = reason_of(w, v, t);
        w->at = v->now;
    }
    w->came = w->came || t != NULL;
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
            if (w->rival_ns[i][k] > 0) w->list[(*n)++] = (WhyBlocker){k, as[i], w->rival_ns[i][k]};
    if (*n > 0) qsort(w->list, *n, sizeof *w->list, longest);
    return w->list;
}
