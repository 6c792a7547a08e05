// A job from its pods: which of them start together, what they ask for, and where they run.
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "kube/kube_jobs.h"
#include "placement/placement.h"

typedef struct GpuParts {
    uint16_t free[CLUSTER_GPUS];
} GpuParts;

static uint32_t gpus_of(const KubePodInfo *p) { return kube_amount(p->requests.of[KUBE_GPU]); }

static uint32_t milli_of(const KubePodInfo *p) {
    if (gpus_of(p) == 0) return 0;
    return p->gpu_milli > 0 && p->gpu_milli < CLUSTER_WHOLE_GPU ? p->gpu_milli : CLUSTER_WHOLE_GPU;
}

// GPUs as a pod holds them: the lowest that have enough left.
static void give_mask(GpuParts *parts, KubeMember *m) {
    const KubePodInfo *p = kube_pod_info(m->pod);
    uint32_t           n = gpus_of(p), milli = milli_of(p);
    GpuParts          *g = &parts[m->server];
    if (m->mask == 0) m->mask = gpu_parts_lowest(g->free, CLUSTER_GPUS, n, milli);
    for (uint64_t mask = m->mask; mask != 0; mask &= mask - 1) {
        uint16_t *free = &g->free[__builtin_ctzll(mask)];
        *free = (uint16_t)(*free > milli ? *free - milli : 0);
    }
}

static void give_masks(KubeJobs *x, GpuParts *parts, bool known) {
    for (uint32_t i = 0; i < x->n_slots; i++)
        for (uint32_t k = 0; x->at[i] != NULL && !x->at[i]->own && k < x->at[i]->n; k++) {
            KubeMember *m = &x->at[i]->members[k];
            if (m->server == CLUSTER_NONE || gpus_of(kube_pod_info(m->pod)) == 0) continue;
            if ((m->mask != 0) == known) give_mask(parts, m);
        }
}

Err kube_gang_masks(KubeJobs *x, const KubeState *s, Arena *scratch) {
    KubeNode *const *nodes;
    uint32_t         n = kube_state_nodes(s, &nodes);
    GpuParts        *parts = arena_try_new(scratch, GpuParts, n + 1);
    if (parts == NULL) return err_set(ERR_LIMIT, "no memory for the GPUs of %u nodes", n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t g = 0; g < CLUSTER_GPUS; g++) parts[i].free[g] = CLUSTER_WHOLE_GPU;
    give_masks(x, parts, true);
    give_masks(x, parts, false);
    return ERR_OK;
}

static bool older(const KubeMember *a, const KubeMember *b) {
    const KubePodInfo *x = kube_pod_info(a->pod), *y = kube_pod_info(b->pod);
    if (x->created != y->created) return x->created < y->created;
    return strcmp(a->name, b->name) < 0;
}

// The oldest pods that may start, as many as start together.
static void choose(KubeJob *j) {
    for (uint32_t i = 0; i < j->n; i++) j->members[i].chosen = false;
    for (uint32_t k = 0; k < j->least; k++) {
        KubeMember *best = NULL;
        for (uint32_t i = 0; i < j->n; i++) {
            KubeMember *m = &j->members[i];
            if (m->free && !m->chosen && (best == NULL || older(m, best))) best = m;
        }
        if (best != NULL) best->chosen = true;
    }
}

static void choose_all(KubeJob *j) {
    for (uint32_t i = 0; i < j->n; i++) j->members[i].chosen = j->members[i].free;
}

static void choose_bound(KubeJob *j) {
    for (uint32_t i = 0; i < j->n; i++)
        j->members[i].chosen = j->members[i].bound && j->members[i].server != CLUSTER_NONE;
}

typedef struct JobDemand {
    int64_t  gpus, cores, memory;
    uint32_t pods, least_milli;
} JobDemand;

void kube_gang_route(KubeJob *j) {
    uint32_t parts = 0, gpus = 0;
    for (uint32_t i = 0; i < j->n; i++) {
        const KubePodInfo *p = kube_pod_info(j->members[i].pod);
        gpus += gpus_of(p);
        parts += gpus_of(p) > 0 && milli_of(p) < CLUSTER_WHOLE_GPU;
    }
    j->own = (parts > 0 && gpus > 1) || (gpus == 0 && j->n > 1);
}

// As first requested, before any resize.
static JobDemand demand_of(const KubeJob *j) {
    JobDemand d = {.least_milli = CLUSTER_WHOLE_GPU};
    for (uint32_t i = 0; i < j->n; i++) {
        const KubeMember *m = &j->members[i];
        if (!m->chosen) continue;
        const KubePodInfo *p = kube_pod_info(m->pod);
        const KubeAmounts *a = &m->asked;
        uint32_t           n = gpus_of(p);
        d.pods++;
        d.gpus += n;
        d.cores += a->of[KUBE_CPU];
        d.memory += kube_mib(a->of[KUBE_MEMORY]);
        if (n > 0 && milli_of(p) < d.least_milli) d.least_milli = milli_of(p);
    }
    return d;
}

static void set_demand(KubeJobs *x, KubeJob *j) {
    JobDemand   d = demand_of(j);
    ClusterJob *to = &x->tasks[j->slot].job;
    to->gpus = kube_amount(d.gpus);
    to->gpu_milli = d.gpus > 0 ? d.least_milli : 0;
    to->cores_milli = kube_amount(d.cores);
    to->memory_mib = kube_amount(d.memory);
}

static ClusterSlice *slice_on(KubeJob *j, uint32_t n, uint32_t server) {
    for (uint32_t i = 0; i < n; i++)
        if (j->slices[i].server == server) return &j->slices[i];
    return NULL;
}

static void add_to(ClusterSlice *s, const KubeMember *m, uint32_t milli) {
    const KubeAmounts *a = &kube_pod_info(m->pod)->requests;
    s->mask |= m->mask;
    s->gpus = (uint32_t)__builtin_popcountll(s->mask);
    s->gpu_milli = milli;
    s->cores_milli += kube_amount(a->of[KUBE_CPU]);
    s->memory_mib += kube_mib(a->of[KUBE_MEMORY]);
}

// One slice per server, from the bound pods.
static Err set_slices(KubeJobs *x, KubeJob *j) {
    ClusterTask *t = &x->tasks[j->slot];
    uint32_t     n = 0;
    if (j->slices_room < j->n) {
        ClusterSlice *more = realloc(j->slices, j->n * sizeof *more);
        if (more == NULL) return err_set(ERR_LIMIT, "no memory for the pods of a gang");
        j->slices = more;
        j->slices_room = j->n;
    }
    for (uint32_t i = 0; i < j->n; i++) {
        const KubeMember *m = &j->members[i];
        if (!m->chosen) continue;
        ClusterSlice *s = slice_on(j, n, m->server);
        if (s == NULL) *(s = &j->slices[n++]) = (ClusterSlice){.server = m->server};
        add_to(s, m, t->job.gpu_milli);
    }
    t->slices = j->slices;
    t->n_slices = n;
    t->job.gpus = cluster_slices_gpus(j->slices, n);
    return ERR_OK;
}

static uint64_t shape_of(const ClusterTask *t) {
    uint64_t h = hash_fnv_add(HASH_FNV_START, t->n_slices);
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *s = &t->slices[i];
        h = hash_fnv_add(hash_fnv_add(h, s->mask), (uint64_t)s->server << 32 | s->gpus);
        h = hash_fnv_add(hash_fnv_add(h, s->cores_milli), s->memory_mib);
    }
    return h;
}

static void enter(KubeJobs *x, ClusterTask *t, ClusterState to) {
    x->fractions = x->fractions || (t->job.gpus > 0 && t->job.gpu_milli < CLUSTER_WHOLE_GPU);
    x->no_gpus = x->no_gpus || t->job.gpus == 0;
    t->state = to;
    t->entry = ++x->entries;
    t->since = t->mark = x->now;
}

// Pods that were bound before this process saw them have run since they were made, at most.
static void begin_run(KubeJobs *x, KubeJob *j) {
    ClusterTask *t = &x->tasks[j->slot];
    bool         known = t->state == CLUSTER_WAITING || j->phase == KUBE_JOB_READY;
    if (t->job.id == 0) t->job.id = ++x->ids;
    enter(x, t, CLUSTER_RUNNING);
    if (!known) {
        t->since = j->first;
        t->held = x->now > j->first ? x->now - j->first : 0;
        j->work_s = (double)t->held / 1e9;
    }
    kube_jobs_started(x, j);
    j->waits_for_room = false;
}

static Err settle_running(KubeJobs *x, KubeJob *j) {
    ClusterTask *t = &x->tasks[j->slot];
    choose_bound(j);
    set_demand(x, j);
    TRY(set_slices(x, j));
    uint64_t shape = shape_of(t);
    bool     shown = !j->own && t->n_slices > 0;
    if (shown && t->state != CLUSTER_RUNNING) begin_run(x, j);
    if (!shown && t->state != CLUSTER_GONE) t->state = CLUSTER_GONE;
    if (!shown && j->phase != KUBE_JOB_RUNS) t->since = x->now;
    if (shape != j->shape) {
        if (j->shape != 0) x->reason |= CLUSTER_JOB_ENDED;  // some of it, or its amounts
        t->measured = 0;
        j->shape = shape;
        j->resized_at = x->now;
    }
    j->phase = KUBE_JOB_RUNS;
    return ERR_OK;
}

// A job that is shown again after a back-off is a new one to policies: it left its place.
static void show(KubeJobs *x, ClusterTask *t) {
    t->job.id = ++x->ids;
    enter(x, t, CLUSTER_WAITING);
    x->reason |= CLUSTER_JOB_ARRIVED;
}

static void stop_running(KubeJobs *x, KubeJob *j) {
    ClusterTask *t = &x->tasks[j->slot];
    if (t->state == CLUSTER_RUNNING) x->reason |= CLUSTER_JOB_ENDED;
    if (t->state == CLUSTER_RUNNING && j->evicted) {
        t->preemptions++;
        t->owed = 0;
    }
    t->state = CLUSTER_GONE;
    t->slices = NULL;
    t->n_slices = 0;
    t->measured = 0;
    j->evicted = false;
    j->shape = 0;
}

// New jobs and those whose sets were dropped, as many as one update has time for.
static Err find_servers(KubeJobs *x, KubeJob *j) {
    KubeNode *const *nodes;
    uint64_t         cost = 1 + (uint64_t)kube_state_nodes(x->state, &nodes) * j->least;
    x->find_more = x->find_more || x->find_left < cost;
    if (x->find_left < cost) return ERR_OK;
    x->find_left -= cost;
    return kube_servers_of(x, x->state, j);
}

static Err settle_waiting(KubeJobs *x, KubeJob *j) {
    ClusterTask *t = &x->tasks[j->slot];
    if (t->state == CLUSTER_RUNNING || j->phase == KUBE_JOB_RUNS) stop_running(x, j);
    bool enough = j->least > 0 && j->n_free >= j->least;
    j->phase = enough ? KUBE_JOB_READY : KUBE_JOB_INCOMPLETE;
    if (enough)
        choose(j);
    else
        choose_all(j);
    set_demand(x, j);
    if (enough && j->ready_at == 0) TRY(find_servers(x, j));
    bool visible =
        enough && !j->own && !j->waits_for_room && x->now >= j->retry_at && j->ready_at > 0;
    if (visible && t->state != CLUSTER_WAITING) show(x, t);
    if (!visible) t->state = CLUSTER_GONE;
    return ERR_OK;
}

Err kube_gang_settle(KubeJobs *x, KubeJob *j) {
    if (j->n_bound > 0) return settle_running(x, j);
    return settle_waiting(x, j);
}
