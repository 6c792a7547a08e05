// lucid: packing by share scores, without stopping anybody
//
// Jobs go by what is left of them times their GPUs. One that finds no place goes onto the GPUs of a
// running one that is as wide, if both together are not too much: a class that keeps a GPU little
// busy scores 0, one that keeps it very busy 2, others 1, and a pair must not exceed a limit.
#include <string.h>

#include "policy/cluster/common/priority_queue.h"
#include "policy/cluster/common/colocation.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(pass, bool, true, 0, 1, "who finds no place lets those behind it go first")                  \
    X(limit, int, 1, -1, 4, "sum of the scores of two that share a GPU; -1: nobody shares")        \
    X(small_util, double, 0.5, 0.0, 1.0, "a class scores 0 if it keeps a GPU no busier than this") \
    X(small_memory, double, 0.5, 0.0, 1.0, "and the GPU's memory no busier than this")             \
    X(large_util, double, 0.8, 0.0, 1.0, "a class scores 2 if it keeps a GPU busier than this")    \
    X(large_gb, double, 7.0, 0.0, 1e4, "or needs more of its memory than this, in GB")             \
    X(gain, double, 1.0, 0.0, 4.0, "rates of two that share a GPU must sum to at least this")      \
    X(slowest, double, 0.6, 0.0, 1.0, "and neither may be slower than this")                       \
    X(profile_s, int, 0, 0, 86400, "a class is known once a job of it has run for so long")

typedef struct LucidSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
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
    SortKey        *rank;   // [n_slots] of those that wait
    uint32_t       *queue;  // [n_queue] slots by rank
    uint32_t        n_queue;
    uint64_t        seen;   // the last entry in the queue
    uint64_t        known;  // bit c: class c was profiled
    int             score[PROFILE_CLASSES];
} Lucid;

static void lay_out(Lucid *l, const ClusterSetup *s, Carve *from) {
    l->rank = carve(from, SortKey, s->n_slots);
    l->queue = carve(from, uint32_t, s->n_slots);
    colocation_carve(&l->colocation, s, from);
    plan_builder_carve(&l->builder, s, from);
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Lucid l = {0};
    Carve c = {.used = sizeof l};
    lay_out(&l, s, &c);
    return c.used;
}

static int score_of(const LucidSettings *w, const ClusterProfile *p) {
    if (p->gpu_util > w->large_util || p->gpu_gb > w->large_gb) return 2;
    return p->gpu_util <= w->small_util && p->gpu_memory_util <= w->small_memory ? 0 : 1;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Lucid *l = state;
    Carve  c = {.base = state, .used = sizeof *l};
    lay_out(l, s, &c);
    plan_builder_init(&l->builder, s);
    l->cfg = *(const LucidSettings *)settings;
    if (l->cfg.profile_s == 0) l->known = UINT64_MAX;
    for (uint32_t i = 0; s->profiles != NULL && i < s->profiles->n; i++)
        l->score[i] = score_of(&l->cfg, &s->profiles->at[i]);
}

static bool may_share(const void *of, const ClusterJob *holder, const ClusterJob *joiner) {
    const Lucid *l = of;
    return (l->known >> holder->class & l->known >> joiner->class & 1) != 0 &&
           l->score[holder->class] + l->score[joiner->class] <= l->cfg.limit;
}

static bool before(const Lucid *l, const ClusterView *v, uint32_t a, uint32_t b) {
    int c = sort_key_compare(l->rank[a], l->rank[b]);
    return c != 0 ? c < 0 : v->tasks[a].entry < v->tasks[b].entry;
}

static void join_queue(Lucid *l, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    uint32_t           low = 0, high = l->n_queue;
    l->rank[slot] = (SortKey){(double)cluster_left(v, t) * (double)cluster_gpu_milli(&t->job), 0};
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

static void look(Lucid *l, const ClusterView *v) {
    uint32_t from = v->n_waiting;
    while (from > 0 && v->tasks[v->waiting[from - 1]].entry > l->seen) from--;
    for (; from < v->n_waiting; from++) {
        join_queue(l, v, v->waiting[from]);
        l->seen = v->tasks[v->waiting[from]].entry;
    }
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        bool               told = cluster_held(v, t) >= l->cfg.profile_s * CLUSTER_SECOND;
        if (told && t->job.class < PROFILE_CLASSES) l->known |= UINT64_C(1) << t->job.class;
        if (pack_alone(&l->builder, v->running[i])) pack_restore(&l->builder, v->running[i]);
    }
}

static bool serve(Lucid *l, uint32_t slot) {
    if (plan_builder_place(&l->builder, slot)) {
        colocation_add(&l->colocation, slot);
        return true;
    }
    ColocationParams rule = {l->cfg.gain, l->cfg.slowest, may_share, l};
    return colocation_join(&l->colocation, slot, &rule) != CLUSTER_NONE;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Lucid   *l = state;
    uint32_t kept = 0;
    bool     blocked = false;
    (void)max;
    plan_builder_begin(&l->builder, v);
    look(l, v);
    colocation_open(&l->colocation, &l->builder);
    for (uint32_t i = 0; i < l->n_queue; i++) {
        uint32_t slot = l->queue[i];
        bool     served = !blocked && serve(l, slot);
        if (!served) l->queue[kept++] = slot;
        blocked = blocked || (!served && !l->cfg.pass);
    }
    l->n_queue = kept;
    return plan_builder_write(&l->builder, out);
}

const ClusterPolicy cluster_policy_lucid = {
    .name = "lucid",
    .about = "least GPU time first; jobs that leave a GPU idle share it, and nobody is stopped",
    .paper = "Lucid (ASPLOS 2023)",
    .knows = CLUSTER_ORACLE,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(LucidSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
