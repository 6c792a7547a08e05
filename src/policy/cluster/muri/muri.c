// muri: jobs take turns on GPUs
//
// Least GPU time left first. Where all ask for more GPUs than there are, those of the same width
// are put onto the same GPUs in groups of up to four, the ones first that get most done together,
// until what is asked for is there. At whole periods others are stopped for it; in between GPUs
// that come free are filled, and who is alone on one has it whole again.
#include "policy/cluster/common/priority_queue.h"
#include "policy/cluster/common/colocation.h"
#include "policy/cluster/muri/muri_match.h"
#include "policy/cluster/muri/muri_place.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(period_s, int, 0, 0, 86400, "between decisions that stop jobs; 0: at every event")           \
    X(depth, double, 1.0, 1.0, 8.0, "jobs that are looked at ask for so many times the GPUs")      \
    X(most, int, 4, 1, PACK_MOST, "jobs in a group")                                               \
    X(gain, double, 1.3, 0.0, 4.0, "what a merger of groups must get done, by each of them")       \
    X(slowest, double, 0.7, 0.0, 1.0, "rate of a job that shares GPUs, at least")                  \
    X(by_stages, bool, false, 0, 1, "what groups get done is reckoned from stages of iterations")  \
    X(by_need, bool, false, 0, 1, "of a group, who is done soonest has most of cores and memory")  \
    X(las, bool, false, 0, 1, "who has had the least GPU time first, instead of who needs least")

typedef struct MuriSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} MuriSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(MuriSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct MuriTask {
    uint64_t id;    // of the job whose slot it is, from 1
    uint64_t plan;  // the last that gave it a unit
    uint32_t unit;
    SortKey  rank;
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

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Muri  m = {0};
    Carve c = {.used = sizeof m};
    lay_out(&m, s, &c);
    return c.used;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Muri *m = state;
    Carve c = {.base = state, .used = sizeof *m};
    lay_out(m, s, &c);
    plan_builder_init(&m->builder, s);
    m->cfg = *(const MuriSettings *)settings;
    m->period = m->cfg.period_s * CLUSTER_SECOND;
    m->placer.builder = &m->builder;
    m->placer.by_need = m->cfg.by_need;
    m->placer.slowest = m->cfg.slowest;
    m->match.by_stages = m->cfg.by_stages;
    m->match.gain = m->cfg.gain;
    m->match.most = (uint32_t)m->cfg.most;
}

static SortKey rank_of(const Muri *m, const ClusterView *v, const ClusterTask *t) {
    double first = m->cfg.las ? cluster_attained(v, t)
                              : (double)cluster_left(v, t) * (double)cluster_gpu_milli(&t->job);
    return (SortKey){first, (double)t->job.id};
}

// All that are alive, by rank; those that were there stay about where they were.
static void look(Muri *m, const ClusterView *v) {
    uint32_t n = 0, from = v->n_waiting;
    for (uint32_t i = 0; i < m->n_order; i++) {
        const ClusterTask *t = &v->tasks[m->order[i]];
        if (t->state != CLUSTER_GONE && m->tasks[m->order[i]].id == t->job.id + 1)
            m->order[n++] = m->order[i];
    }
    while (from > 0 && v->tasks[v->waiting[from - 1]].entry > m->seen) from--;
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
        m->tasks[slot].rank = rank_of(m, v, &v->tasks[slot]);
        for (; at > 0 && sort_key_compare(m->tasks[slot].rank, m->tasks[m->order[at - 1]].rank) < 0;
             at--)
            m->order[at] = m->order[at - 1];
        m->order[at] = slot;
    }
}

// Those at the head of the order; who shares GPUs already is one unit with its corunners.
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

// Units are served in order while there are GPUs; members of the others have none.
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

// The first member that runs comes first: it stays where it is.
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

static void seat_running(Muri *m, const ClusterView *v) {
    for (uint32_t i = 0; i < m->match.n_units; i++)
        if (!m->match.units[i].gone) anchor(v, &m->match.units[i]);
    for (uint32_t i = 0; i < v->n_running; i++)
        if (!stays(m, v, v->running[i])) plan_builder_stop(&m->builder, v->running[i]);
    for (uint32_t i = 0; i < m->match.n_units; i++) {
        MuriUnit *u = &m->match.units[i];
        if (u->gone || v->tasks[u->at[0]].state != CLUSTER_RUNNING) continue;
        if (u->n > 1 && changed(v, u)) muri_place_group(&m->placer, u->at, u->n);
        if (u->n == 1 && pack_alone(&m->builder, u->at[0])) pack_restore(&m->builder, u->at[0]);
    }
}

static void seat_waiting(Muri *m, const ClusterView *v) {
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

// Whoever has no place by now, in order: as before, or where there is room, or beside another.
// Returns how many are left over.
static uint32_t fill(Muri *m, const ClusterView *v) {
    ColocationParams rule = {.gain = m->cfg.gain, .slowest = m->cfg.slowest};
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
        bool pairs = m->cfg.most > 1 && !m->cfg.by_stages;
        left += !pairs || colocation_join(&m->colocation, slot, &rule) == CLUSTER_NONE;
    }
    return left;
}

// Where nobody waits and GPUs are free, groups part: the last in order moves, if that is worth a
// restart.
static void part(Muri *m, const ClusterView *v) {
    for (uint32_t i = 0; i < v->n_running && m->builder.free.n_free > 0; i++) {
        uint32_t           corunners[PACK_MOST], slot = v->running[i];
        const ClusterTask *t = &v->tasks[slot];
        uint32_t           n = muri_place_corunners(v, slot, corunners);
        if (n < 2 || m->builder.tasks[slot].plan == m->builder.plan) continue;
        if (cluster_left(v, t) < 10 * cluster_restart(v->setup, &t->job)) continue;
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
    look(m, v);
    if (on_time && v->n_waiting > 0) {
        gather(m, v);
        muri_match_run(&m->match, v->setup->gpus * CLUSTER_WHOLE_GPU);
        grant(m, v);
        seat_running(m, v);
        seat_waiting(m, v);
    } else {
        for (uint32_t i = 0; i < v->n_running; i++)
            if (pack_alone(&m->builder, v->running[i])) pack_restore(&m->builder, v->running[i]);
    }
    if (fill(m, v) == 0) part(m, v);
    uint32_t n = plan_builder_write(&m->builder, out);
    if (m->period > 0 && v->n_waiting > 0)
        out[n++] =
            (ClusterAction){.verb = CLUSTER_WAKE, .at = (v->now / m->period + 1) * m->period};
    return n;
}

const ClusterPolicy cluster_policy_muri = {
    .name = "muri",
    .about = "least GPU time left first; jobs that go well together take turns on the same GPUs",
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
