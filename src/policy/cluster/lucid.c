// lucid: packing by sharing scores, without preemption
//
// Jobs start in the order of remaining work x GPUs. A job that does not fit joins the GPUs of a
// running one of equal width if their scores allow it: a class with low GPU utilization scores 0,
// one with high utilization 2, others 1, and the sum of a pair must not exceed a limit.
#include <string.h>

#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/colocation.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(backfill, bool, true, 0, 1, "jobs behind one that does not fit may start first")             \
    X(max_score, int, 1, -1, 4, "largest sum of two scores on a GPU; -1: no sharing")              \
    X(small_util, double, 0.5, 0.0, 1.0, "a class scores 0 up to this GPU utilization")            \
    X(small_memory, double, 0.5, 0.0, 1.0, "and up to this GPU memory utilization")                \
    X(large_util, double, 0.8, 0.0, 1.0, "a class scores 2 above this GPU utilization")            \
    X(large_gb, double, 7.0, 0.0, 1e4, "or above this much GPU memory, in GB")                     \
    X(min_sum, double, 1.0, 0.0, 4.0, "least sum of the rates of two jobs on a GPU")               \
    X(min_rate, double, 0.6, 0.0, 1.0, "least rate of either")                                     \
    X(profile_s, int, 0, 0, 86400, "seconds of a class's first job until its score is known")

typedef struct LucidSettings {
    SETTINGS(SETTING_FIELD)
} LucidSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(LucidSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Lucid {
    LucidSettings   cfg;
    PlanBuilder     builder;
    ColocationIndex colocation;
    SortKey        *key;    // [n_slots] of waiting tasks
    uint32_t       *queue;  // [n_queue] slots by key
    uint32_t        n_queue;
    uint64_t        seen;   // the last entry number in the queue
    uint64_t        known;  // bit c: class c is profiled
    int             score[PROFILE_CLASSES];
} Lucid;

static void lay_out(Lucid *l, const ClusterSetup *s, Carve *from) {
    l->key = carve(from, SortKey, s->n_slots);
    l->queue = carve(from, uint32_t, s->n_slots);
    colocation_carve(&l->colocation, s, from);
    plan_builder_carve(&l->builder, s, from);
}

CLUSTER_POLICY_STATE(Lucid)

static int score_of(const LucidSettings *w, const ClusterProfile *p) {
    if (p->gpu_util > w->large_util || p->gpu_gb > w->large_gb) return 2;
    return p->gpu_util <= w->small_util && p->gpu_memory_util <= w->small_memory ? 0 : 1;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Lucid *l = state_open(state, s);
    l->cfg = *(const LucidSettings *)settings;
    if (l->cfg.profile_s == 0) l->known = UINT64_MAX;
    for (uint32_t i = 0; s->profiles != NULL && i < s->profiles->n; i++)
        l->score[i] = score_of(&l->cfg, &s->profiles->at[i]);
}

static bool may_share(const void *of, const ClusterJob *holder, const ClusterJob *joiner) {
    const Lucid *l = of;
    return (l->known >> holder->class & l->known >> joiner->class & 1) != 0 &&
           l->score[holder->class] + l->score[joiner->class] <= l->cfg.max_score;
}

static bool before(const Lucid *l, const ClusterView *v, uint32_t a, uint32_t b) {
    int c = sort_key_compare(l->key[a], l->key[b]);
    return c != 0 ? c < 0 : v->tasks[a].entry < v->tasks[b].entry;
}

static void enqueue(Lucid *l, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    uint32_t           low = 0, high = l->n_queue;
    l->key[slot] = (SortKey){(double)cluster_left(v, t) * (double)cluster_gpu_milli(&t->job), 0};
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (before(l, v, slot, l->queue[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    memmove(l->queue + low + 1, l->queue + low, (l->n_queue - low) * sizeof *l->queue);
    l->queue[low] = slot;
    l->n_queue++;
}

static void update(Lucid *l, const ClusterView *v) {
    uint32_t from = waiting_since(v, l->seen);
    for (; from < v->n_waiting; from++) {
        enqueue(l, v, v->waiting[from]);
        l->seen = v->tasks[v->waiting[from]].entry;
    }
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        bool               profiled = cluster_held(v, t) >= l->cfg.profile_s * CLUSTER_SECOND;
        if (profiled && t->job.class < PROFILE_CLASSES) l->known |= UINT64_C(1) << t->job.class;
        if (pack_alone(&l->builder, v->running[i])) pack_restore(&l->builder, v->running[i]);
    }
}

static bool start_or_share(Lucid *l, uint32_t slot) {
    if (plan_builder_place(&l->builder, slot)) {
        colocation_add(&l->colocation, slot);
        return true;
    }
    ColocationParams rule = {l->cfg.min_sum, l->cfg.min_rate, may_share, l};
    return colocation_join(&l->colocation, slot, &rule) != CLUSTER_NONE;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Lucid   *l = state;
    uint32_t kept = 0;
    bool     blocked = false;
    (void)max;
    plan_builder_begin(&l->builder, v);
    update(l, v);
    colocation_open(&l->colocation, &l->builder);
    for (uint32_t i = 0; i < l->n_queue; i++) {
        uint32_t slot = l->queue[i];
        bool     served = !blocked && start_or_share(l, slot);
        if (!served) l->queue[kept++] = slot;
        blocked = blocked || (!served && !l->cfg.backfill);
    }
    l->n_queue = kept;
    return plan_builder_write(&l->builder, out);
}

const ClusterPolicy cluster_policy_lucid = {
    .name = "lucid",
    .about = "least GPU time first; jobs with low GPU utilization share GPUs; no preemption",
    .paper = "Lucid (ASPLOS 2023)",
    .knows = CLUSTER_ORACLE,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(LucidSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
