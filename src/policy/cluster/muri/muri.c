// muri: interleaving jobs on shared GPUs
//
// Least GPU time left first. When the requested GPUs exceed the cluster's, jobs of equal width are
// grouped onto the same GPUs, up to four each, largest joint progress first, until the request
// fits. At whole periods other jobs are preempted for this plan; in between, free GPUs are filled,
// and a job left alone on a shared GPU gets the whole of it.
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/colocation.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/cluster/muri/muri_group.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(period_s, int, 0, 0, 86400, "seconds between decisions that preempt; 0: every event")        \
    X(depth, double, 1.0, 1.0, 8.0, "consider jobs that request this many times the GPUs")         \
    X(max_group, int, 4, 1, PACK_MOST, "largest group of jobs on the same GPUs")                   \
    X(min_gain, double, 1.3, 0.0, 4.0, "least progress of a merged group, relative to its parts")  \
    X(min_rate, double, 0.7, 0.0, 1.0, "least rate of a job that shares GPUs")                     \
    X(by_stages, bool, false, 0, 1, "derive a group's progress from the stages of iterations")     \
    X(by_need, bool, false, 0, 1, "in a group, favor jobs near their end with cores and memory")   \
    X(las, bool, false, 0, 1, "order by least attained GPU time instead of least left")

typedef struct MuriSettings {
    SETTINGS(SETTING_FIELD)
} MuriSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(MuriSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct MuriTask {
    uint64_t id;    // of the job in this slot, plus 1; 0: none
    uint64_t plan;  // number of the last plan with a unit for it
    uint32_t unit;
    SortKey  key;
} MuriTask;

typedef struct Muri {
    MuriSettings    cfg;
    PlanBuilder     builder;
    ColocationIndex colocation;
    MuriMatch       match;
    MuriPlacer      placer;
    MuriTask       *tasks;  // [n_slots]
    uint32_t       *order;  // [n_order] slots
    uint32_t        n_order;
    uint64_t        seen, plan;
    TimeNs          period;
} Muri;

static void lay_out(Muri *m, const ClusterSetup *s, Carve *from) {
    m->tasks = carve(from, MuriTask, s->n_slots);
    m->order = carve(from, uint32_t, s->n_slots);
    colocation_carve(&m->colocation, s, from);
    muri_match_carve(&m->match, s, from);
    muri_place_carve(&m->placer, s, from);
    plan_builder_carve(&m->builder, s, from);
}

CLUSTER_POLICY_STATE(Muri)

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Muri *m = state_open(state, s);
    m->cfg = *(const MuriSettings *)settings;
    m->period = m->cfg.period_s * CLUSTER_SECOND;
    m->placer.builder = &m->builder;
    m->placer.by_need = m->cfg.by_need;
    m->placer.min_rate = m->cfg.min_rate;
    m->match.by_stages = m->cfg.by_stages;
    m->match.min_gain = m->cfg.min_gain;
    m->match.max_group = (uint32_t)m->cfg.max_group;
}

static SortKey key_of(const Muri *m, const ClusterView *v, const ClusterTask *t) {
    double first = m->cfg.las ? cluster_attained(v, t)
                              : (double)cluster_left(v, t) * (double)cluster_gpu_milli(&t->job);
    return (SortKey){first, (double)t->job.id};
}

// All live tasks by key; insertion sort, as most are in order already.
static void update_order(Muri *m, const ClusterView *v) {
    uint32_t n = 0, from = waiting_since(v, m->seen);
    for (uint32_t i = 0; i < m->n_order; i++) {
        const ClusterTask *t = &v->tasks[m->order[i]];
        if (t->state != CLUSTER_GONE && m->tasks[m->order[i]].id == t->job.id + 1)
            m->order[n++] = m->order[i];
    }
    for (; from < v->n_waiting; from++) {
        uint32_t slot = v->waiting[from];
        m->seen = v->tasks[slot].entry;
        if (m->tasks[slot].id == v->tasks[slot].job.id + 1) continue;
        m->tasks[slot] = (MuriTask){.id = v->tasks[slot].job.id + 1};
        m->order[n++] = slot;
    }
    m->n_order = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = m->order[i], at = i;
        m->tasks[slot].key = key_of(m, v, &v->tasks[slot]);
        for (; at > 0 && sort_key_compare(m->tasks[slot].key, m->tasks[m->order[at - 1]].key) < 0;
             at--)
            m->order[at] = m->order[at - 1];
        m->order[at] = slot;
    }
}

// Tasks from the head of the order; those that share GPUs already are one unit.
static void gather(Muri *m, const ClusterView *v) {
    double most = m->cfg.depth * (double)v->setup->gpus * CLUSTER_WHOLE_GPU;
    muri_match_open(&m->match);
    m->plan++;
    for (uint32_t i = 0; i < m->n_order && (double)m->match.milli < most; i++) {
        uint32_t corunners[PACK_MOST], slot = m->order[i];
        if (m->tasks[slot].plan == m->plan) continue;
        uint32_t n = muri_place_corunners(v, slot, corunners);
        for (uint32_t k = 0; k < n; k++) m->tasks[corunners[k]].plan = m->plan;
        muri_match_add(&m->match, v->tasks, corunners, n);
    }
}

// Grants GPUs to units in order, as far as they reach.
static void grant(Muri *m, const ClusterView *v) {
    uint64_t left = v->setup->gpus * CLUSTER_WHOLE_GPU;
    m->plan++;
    for (uint32_t i = 0; i < m->match.n_units; i++) {
        MuriUnit *u = &m->match.units[i];
        uint64_t  milli = cluster_gpu_milli(&v->tasks[u->at[0]].job);
        if (u->gone) continue;
        u->gone = milli > left;
        if (u->gone) continue;
        left -= milli;
        for (uint32_t k = 0; k < u->n; k++) {
            m->tasks[u->at[k]].plan = m->plan;
            m->tasks[u->at[k]].unit = i;
        }
    }
}

// Moves the first running member to the front: the group forms on its GPUs.
static void anchor(const ClusterView *v, MuriUnit *u) {
    uint32_t k = 0;
    while (k < u->n && v->tasks[u->at[k]].state != CLUSTER_RUNNING) k++;
    if (k == u->n) return;
    uint32_t first = u->at[k];
    for (; k > 0; k--) u->at[k] = u->at[k - 1];
    u->at[0] = first;
}

static bool stays(const Muri *m, const ClusterView *v, uint32_t slot) {
    const MuriTask *t = &m->tasks[slot];
    if (t->plan != m->plan) return false;
    uint32_t first = m->match.units[t->unit].at[0];
    return slot == first || muri_place_together(v, first, slot);
}

static bool changed(const ClusterView *v, const MuriUnit *u) {
    uint32_t corunners[PACK_MOST];
    bool     same = muri_place_corunners(v, u->at[0], corunners) == u->n;
    for (uint32_t k = 1; k < u->n; k++) same = same && muri_place_together(v, u->at[0], u->at[k]);
    return !same;
}

static void place_running(Muri *m, const ClusterView *v) {
    for (uint32_t i = 0; i < m->match.n_units; i++)
        if (!m->match.units[i].gone) anchor(v, &m->match.units[i]);
    for (uint32_t i = 0; i < v->n_running; i++)
        if (!stays(m, v, v->running[i]) && plan_builder_may_stop(&m->builder, v->running[i]))
            plan_builder_stop(&m->builder, v->running[i]);
    for (uint32_t i = 0; i < m->match.n_units; i++) {
        MuriUnit *u = &m->match.units[i];
        if (u->gone || v->tasks[u->at[0]].state != CLUSTER_RUNNING) continue;
        if (u->n > 1 && changed(v, u)) muri_place_group(&m->placer, u->at, u->n);
        if (u->n == 1 && pack_alone(&m->builder, u->at[0])) pack_restore(&m->builder, u->at[0]);
    }
}

static void place_waiting(Muri *m, const ClusterView *v) {
    for (uint32_t i = 0; i < m->match.n_units; i++) {
        MuriUnit *u = &m->match.units[i];
        if (u->gone || v->tasks[u->at[0]].state == CLUSTER_RUNNING) continue;
        ClusterJob j = v->tasks[u->at[0]].job;
        j.gpu_types = u->types;
        if (plan_builder_place_as(&m->builder, u->at[0], &j) && u->n > 1)
            muri_place_group(&m->placer, u->at, u->n);
    }
}

static bool has_place(const Muri *m, uint32_t slot) {
    uint32_t n = 0;
    (void)plan_builder_slices(&m->builder, slot, &n);
    return n > 0;
}

// Tasks still without GPUs, in order: on their old GPUs, on free ones, or joining a holder.
// Returns the number left over.
static uint32_t fill(Muri *m, const ClusterView *v) {
    ColocationParams rule = {.min_sum = m->cfg.min_gain, .min_rate = m->cfg.min_rate};
    uint32_t         left = 0;
    colocation_open(&m->colocation, &m->builder);
    for (uint32_t i = 0; i < m->n_order; i++) {
        uint32_t slot = m->order[i];
        if (has_place(m, slot)) {
            if (v->tasks[slot].state == CLUSTER_WAITING) colocation_add(&m->colocation, slot);
            continue;
        }
        if (muri_place_back(&m->placer, slot)) continue;
        if (plan_builder_place(&m->builder, slot)) {
            colocation_add(&m->colocation, slot);
            continue;
        }
        bool pairs = m->cfg.max_group > 1 && !m->cfg.by_stages;
        left += !pairs || colocation_join(&m->colocation, slot, &rule) == CLUSTER_NONE;
    }
    return left;
}

// With none waiting and GPUs free, groups split: a member moves if that is worth a restart.
static void split_groups(Muri *m, const ClusterView *v) {
    for (uint32_t i = 0; i < v->n_running && m->builder.free.n_free > 0; i++) {
        uint32_t           corunners[PACK_MOST], slot = v->running[i];
        const ClusterTask *t = &v->tasks[slot];
        uint32_t           n = muri_place_corunners(v, slot, corunners);
        if (n < 2 || m->builder.tasks[slot].plan == m->builder.plan) continue;
        if (cluster_left(v, t) < 10 * cluster_restart(v->setup, &t->job)) continue;
        if (!plan_builder_may_stop(&m->builder, slot)) continue;
        plan_builder_stop(&m->builder, slot);
        if (plan_builder_place(&m->builder, slot)) {
            if (n > 2) muri_place_group(&m->placer, corunners + 1, n - 1);
            if (n == 2 && pack_alone(&m->builder, corunners[1]))
                pack_restore(&m->builder, corunners[1]);
        } else {
            (void)muri_place_back(&m->placer, slot);
        }
    }
}

static bool shares(const ClusterView *v) {
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        if (t->slices->gpu_milli < t->job.gpu_milli) return true;
    }
    return false;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Muri *m = state;
    bool  on_time = m->period == 0 || v->now % m->period == 0 || v->setup->round > 0;
    (void)max;
    if (v->n_waiting == 0 && !shares(v)) return 0;
    plan_builder_begin(&m->builder, v);
    update_order(m, v);
    if (on_time && v->n_waiting > 0) {
        gather(m, v);
        muri_match_run(&m->match, v->setup->gpus * CLUSTER_WHOLE_GPU);
        grant(m, v);
        place_running(m, v);
        place_waiting(m, v);
    } else {
        for (uint32_t i = 0; i < v->n_running; i++)
            if (pack_alone(&m->builder, v->running[i])) pack_restore(&m->builder, v->running[i]);
    }
    if (fill(m, v) == 0) split_groups(m, v);
    uint32_t n = plan_builder_write(&m->builder, out);
    if (m->period > 0 && v->n_waiting > 0)
        out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = period_after(v->now, m->period)};
    return n;
}

const ClusterPolicy cluster_policy_muri = {
    .name = "muri",
    .about = "least GPU time left first; jobs that interleave well share GPUs",
    .paper = "Muri (SIGCOMM 2022)",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(MuriSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
