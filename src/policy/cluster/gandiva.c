// gandiva: time slices, packing and migration, from observation instead of estimates
//
// 1. A job starts on the server with the most free cores. If it does not fit, it is tried beside a
//    running job of the same width on that job's GPUs; the pack is kept if both together make more
//    progress than a threshold. The profile's pair rates stand in for the measurement.
// 2. If packing fails too, GPUs are time-sliced: jobs that had their slice are preempted for
// waiting
//    ones, the longest-running first.
// 3. A gang that does not fit although enough GPUs are free is made room for: small jobs migrate to
//    other servers.
// 4. When none waits, packs are split as GPUs become free.
// 5. Gangs have a fixed size here, so cores and memory are what grows and shrinks: a job shrinks to
//    the lowest allocation level of its class so that jobs which gain from more get it, and gives
//    it back at once when a job arrives.
//
// Preemption and migration cost a restart, so slices are longer than the original's minute. Jobs
// migrate only after they have run for long enough that they likely run on for longer than that.
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/elastic.h"
#include "policy/cluster/common/colocation.h"
#include "policy/policies.h"

enum {
    TRIES = 256,    // consecutive jobs that do not fit before a pass ends
    PATIENCE = 20,  // slices of waiting after which any running job is preempted for it
    MOVES = 4,      // migrations for one gang; gangs tried per decision
    SHAPES = 32,
};

#define MIN_RATE 0.25  // of a packed job, relative to running alone

#define SETTINGS(X)                                                                                \
    X(period_s, int, 900, 1, 86400, "seconds of a time slice")                                     \
    X(min_joint, double, 1.3, 1.0, 2.0, "a pack is kept if its rates sum to more than this")       \
    X(elastic, int, 2, 0, 2,                                                                       \
      "grow into cores and memory: 1 unused, 2 also beyond others' lowest level")

typedef struct GandivaSettings {
    SETTINGS(SETTING_FIELD)
} GandivaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(GandivaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Unpackable {  // jobs that found no holder to share GPUs with in this plan
    uint32_t class, gpus, types;
    const uint64_t *servers;
} Unpackable;

typedef struct Gandiva {
    PlanBuilder    builder;
    ElasticScaling elastic;
    uint32_t      *left_over, *holders, *expired;  // [n_slots]
    uint32_t       n_left_over, n_holders, n_expired;
    double        *joint;  // [classes][classes] sum of rates of a pack; 0: not computed yet
    Unpackable     unpackable[SHAPES];
    uint32_t       n_unpackable;
    TimeNs         period, due;
    double         min_joint;
    bool           grows;
} Gandiva;

static void lay_out(Gandiva *g, const ClusterSetup *s, Carve *from) {
    size_t classes = s->profiles != NULL ? s->profiles->n : 0;
    plan_builder_carve(&g->builder, s, from);
    elastic_carve(&g->elastic, s, from);
    g->left_over = carve(from, uint32_t, s->n_slots);
    g->holders = carve(from, uint32_t, s->n_slots);
    g->expired = carve(from, uint32_t, s->n_slots);
    g->joint = carve(from, double, classes *classes);
}

CLUSTER_POLICY_STATE(Gandiva)

static double gain(const void *self, const ClusterView *v, uint32_t slot, double from, double to) {
    (void)self;
    return (to - from) * v->tasks[slot].job.gpus;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    const GandivaSettings *cfg = settings;
    Gandiva               *g = state_open(state, s);
    g->builder.free.worst_fit = true;
    g->elastic.gain = gain;
    g->period = cfg->period_s * CLUSTER_SECOND;
    g->min_joint = cfg->min_joint;
    g->grows = cfg->elastic != 0;
    g->elastic.lean = cfg->elastic > 1;
    g->due = INT64_MAX;
}

// It has fewer cores or less memory than it requests.
static bool below_demand(const ClusterTask *t) {
    const ClusterSlice *s = &t->slices[0];
    uint64_t            all = t->job.gpus;
    return (s->cores_milli + 1) * all <= (uint64_t)t->job.cores_milli * s->gpus ||
           (s->memory_mib + 1) * all <= (uint64_t)t->job.memory_mib * s->gpus;
}

// Tasks left by their co-runner get their whole GPUs and default amounts back.
static void restore(Gandiva *g, const ClusterView *v) {
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        bool               whole = t->slices[0].gpu_milli == t->job.gpu_milli;
        if (t->job.gpus > 0 && (whole ? below_demand(t) : pack_alone(&g->builder, v->running[i])))
            pack_restore(&g->builder, v->running[i]);
    }
}

static void start(Gandiva *g, const ClusterView *v) {
    uint32_t failed = 0;
    g->n_left_over = 0;
    for (uint32_t i = 0; i < v->n_waiting && failed < TRIES; i++) {
        bool placed = plan_builder_place(&g->builder, v->waiting[i]);
        failed = placed ? 0 : failed + 1;
        if (!placed) g->left_over[g->n_left_over++] = v->waiting[i];
    }
}

// Drops tasks placed since from left_over.
static void drop_placed(Gandiva *g) {
    uint32_t kept = 0, n = 0;
    for (uint32_t i = 0; i < g->n_left_over; i++)
        if (plan_builder_slices(&g->builder, g->left_over[i], &n) == NULL)
            g->left_over[kept++] = g->left_over[i];
    g->n_left_over = kept;
}

static void add_holder(Gandiva *g, const ClusterView *v, uint32_t slot) {
    uint32_t            n = 0;
    const ClusterSlice *s = plan_builder_slices(&g->builder, slot, &n);
    if (n > 0 && s->gpus > 0 && s->gpu_milli == CLUSTER_WHOLE_GPU &&
        v->tasks[slot].job.class != CLUSTER_NONE)
        g->holders[g->n_holders++] = slot;
}

// Running tasks and tasks to be started that hold whole GPUs.
static void find_holders(Gandiva *g, const ClusterView *v) {
    g->n_holders = g->n_unpackable = 0;
    if (v->setup->profiles == NULL) return;
    for (uint32_t i = 0; i < v->n_running; i++) add_holder(g, v, v->running[i]);
    for (uint32_t i = 0; i < g->builder.n_touched; i++)
        if (v->tasks[g->builder.touched[i]].state == CLUSTER_WAITING)
            add_holder(g, v, g->builder.touched[i]);
}

static double joint(Gandiva *g, const ClusterView *v, const ClusterJob *a, const ClusterJob *b) {
    double *x = &g->joint[(size_t)a->class * v->setup->profiles->n + b->class];
    if (*x == 0) {
        const ClusterJob *jobs[2] = {a, b};
        double            all = a->gpus > 0 ? a->gpus : 1;
        PackSplit         split;
        pack_split(v->setup, jobs, 2, a->cores_milli / all, a->memory_mib / all, NULL, &split);
        *x = split.sum;
    }
    return *x;
}

static bool is_unpackable(const Gandiva *g, const ClusterJob *j) {
    for (uint32_t i = 0; i < g->n_unpackable; i++) {
        const Unpackable *x = &g->unpackable[i];
        if (x->class == j->class && x->gpus == j->gpus && x->types == j->gpu_types &&
            x->servers == j->servers)
            return true;
    }
    return false;
}

// Index in holders of the task with the largest joint rate; CLUSTER_NONE: none is worth it.
static uint32_t best_holder(Gandiva *g, const ClusterView *v, const ClusterJob *j) {
    uint32_t best = CLUSTER_NONE;
    double   most = 0.9 * g->min_joint;  // free cores there may make up the rest
    for (uint32_t i = 0; i < g->n_holders; i++) {
        const ClusterJob *h = &v->tasks[g->holders[i]].job;
        if (!pack_may(v->setup, h, j)) continue;
        double x = joint(g, v, h, j);
        if (!(x > most)) continue;
        most = x;
        best = i;
    }
    return best;
}

static void pack(Gandiva *g, const ClusterView *v) {
    for (uint32_t i = 0; i < g->n_left_over && g->n_holders > 0; i++) {
        const ClusterJob *j = &v->tasks[g->left_over[i]].job;
        PackSplit         split;
        if (j->class == CLUSTER_NONE || is_unpackable(g, j)) continue;
        uint32_t h = best_holder(g, v, j);
        bool     fits =
            h != CLUSTER_NONE && pack_try(&g->builder, g->holders[h], g->left_over[i], &split) &&
            split.sum > g->min_joint && split.rate[0] > MIN_RATE && split.rate[1] > MIN_RATE &&
            pack_join(&g->builder, g->holders[h], g->left_over[i], &split);
        if (fits)
            g->holders[h] = g->holders[--g->n_holders];
        else if (g->n_unpackable < SHAPES)
            g->unpackable[g->n_unpackable++] =
                (Unpackable){j->class, j->gpus, j->gpu_types, j->servers};
    }
    drop_placed(g);
}

// Tasks that used up their slice, longest-running first.
static void find_expired(Gandiva *g, const ClusterView *v) {
    g->n_expired = 0;
    for (uint32_t i = 0; i < v->n_running; i++)
        if (v->now - v->tasks[v->running[i]].since >= g->period)
            g->expired[g->n_expired++] = v->running[i];
}

// A task that has waited very long may preempt any running one, once per decision.
static void time_slice(Gandiva *g, const ClusterView *v) {
    uint32_t failed = 0;
    bool     pushed = false;
    find_expired(g, v);
    for (uint32_t i = 0; i < g->n_left_over && failed < TRIES; i++) {
        uint32_t           slot = g->left_over[i];
        const ClusterTask *t = &v->tasks[slot];
        bool               placed = plan_builder_place(&g->builder, slot) ||
                      plan_builder_preempt(&g->builder, slot, &t->job, g->expired, g->n_expired);
        if (!placed && !pushed && v->now - t->since > PATIENCE * g->period) {
            pushed = true;
            placed = plan_builder_preempt(&g->builder, slot, &t->job, v->running, v->n_running);
        }
        failed = placed ? 0 : failed + 1;
    }
    drop_placed(g);
}

static bool worth_moving(const ClusterView *v, const ClusterTask *t) {
    return cluster_held(v, t) > 4 * cluster_restart(v->setup, &t->job) &&
           cluster_may_preempt(v->setup, t, v->now);
}

// The server with the most free GPUs among those large enough for the gang.
static uint32_t nearly_free(const Gandiva *g, const ClusterView *v, const ClusterJob *j) {
    const FreeResources *f = &g->builder.free;
    uint32_t             best = CLUSTER_NONE, most = 0;
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const ClusterServer *s = &v->setup->servers[i];
        if (!cluster_server_fits(v->setup, j, i) || s->gpus < j->gpus || f->gpus[i] <= most)
            continue;
        best = i;
        most = f->gpus[i];
    }
    return best;
}

// Small jobs migrate away from one server; if any of them does not fit elsewhere, none moves.
static void make_room(Gandiva *g, const ClusterView *v, uint32_t slot) {
    const ClusterJob *j = &v->tasks[slot].job;
    uint32_t          server = nearly_free(g, v, j), movers[MOVES], n = 0, moved = 0, has = 0;
    if (server == CLUSTER_NONE) return;
    const ServerState *x = &v->servers[server];
    uint32_t           need = j->gpus - g->builder.free.gpus[server];
    for (uint32_t i = 0; i < x->n_residents && n < MOVES && need > 0; i++) {
        const ClusterTask *t = &v->tasks[x->residents[i]];
        bool               whole =
            t->job.gpus > 0 && t->n_slices == 1 && t->slices[0].gpu_milli == CLUSTER_WHOLE_GPU;
        if (!whole || t->job.gpus > need || t->job.gpus * 2 > j->gpus || !worth_moving(v, t))
            continue;
        if (plan_builder_slices(&g->builder, x->residents[i], &has) == NULL) continue;
        movers[n++] = x->residents[i];
        need -= t->job.gpus;
    }
    if (need > 0) return;
    for (uint32_t i = 0; i < n; i++) plan_builder_stop(&g->builder, movers[i]);
    bool placed = plan_builder_place(&g->builder, slot);
    while (placed && moved < n && plan_builder_place(&g->builder, movers[moved])) moved++;
    if (placed && moved == n) return;
    while (moved > 0) plan_builder_stop(&g->builder, movers[--moved]);
    if (placed) plan_builder_stop(&g->builder, slot);
    for (uint32_t i = 0; i < n; i++) {
        const ClusterTask *t = &v->tasks[movers[i]];
        (void)plan_builder_put(&g->builder, movers[i], t->slices, t->n_slices);
    }
}

static void defragment(Gandiva *g, const ClusterView *v) {
    uint32_t tried = 0;
    for (uint32_t i = 0; i < g->n_left_over && tried < MOVES; i++) {
        const ClusterJob *j = &v->tasks[g->left_over[i]].job;
        if (j->gpus < 2 || j->gpus > v->setup->most_gpus || j->gpus > g->builder.free.n_free)
            continue;
        make_room(g, v, g->left_over[i]);
        tried++;
    }
    drop_placed(g);
}

// The latest member of each pack moves to GPUs of its own.
static void split_packs(Gandiva *g, const ClusterView *v) {
    for (uint32_t i = v->n_running; i-- > 0 && g->builder.free.n_free > 0;) {
        uint32_t           slot = v->running[i], corunner = pack_corunner(v, slot), n = 0;
        const ClusterTask *t = &v->tasks[slot];
        if (t->job.gpu_milli < CLUSTER_WHOLE_GPU || corunner == CLUSTER_NONE || !worth_moving(v, t))
            continue;
        if (plan_builder_moves(&g->builder, corunner) ||
            plan_builder_slices(&g->builder, slot, &n) == NULL)
            continue;
        plan_builder_stop(&g->builder, slot);
        if (plan_builder_place(&g->builder, slot)) {
            if (pack_alone(&g->builder, corunner)) pack_restore(&g->builder, corunner);
        } else {
            (void)plan_builder_put(&g->builder, slot, t->slices, t->n_slices);
        }
    }
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Gandiva *g = state;
    (void)max;
    bool round = v->now >= g->due || v->setup->round > 0;
    if (v->n_waiting == 0) round = false;
    if (round || g->due == INT64_MAX) g->due = period_after(v->now, g->period);
    if (v->n_waiting == 0) g->due = INT64_MAX;
    plan_builder_begin(&g->builder, v);
    restore(g, v);
    if (v->n_waiting > 0 && g->grows) elastic_shrink(&g->elastic, &g->builder);
    start(g, v);
    if (g->n_left_over > 0) {
        find_holders(g, v);
        pack(g, v);
    }
    if (g->n_left_over > 0 && round) {
        defragment(g, v);
        time_slice(g, v);
    }
    if (g->n_left_over == 0) split_packs(g, v);
    if (g->grows) elastic_run(&g->elastic, &g->builder);
    uint32_t n = plan_builder_write(&g->builder, out);
    if (g->due < INT64_MAX) out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = g->due};
    return n;
}

const ClusterPolicy cluster_policy_gandiva = {
    .name = "gandiva",
    .about = "packs of two where that makes more progress, else time slices; migration for gangs",
    .paper = "Gandiva (OSDI 2018)",
    .knows = CLUSTER_BLIND,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(GandivaSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
