// gandiva: time slices, packs and moves, by what is seen and not by what is told
//
// 1. A job starts on the server with the most to spare. Where there is no place, it is tried beside
//    a job of the same width on that one's GPUs, and such a pack is kept if both together get more
//    done than one alone: what a profile's pairs say stands for what would be measured.
// 2. Where that does not do either, GPUs are used in turns: who has had its time slice stops for
//    who has waited, the longest slice first.
// 3. Gangs that do not fit though there are enough GPUs free are made room for: small jobs move to
//    other servers.
// 4. When nobody waits, packs are parted as GPUs become free.
// 5. Gangs here are of fixed size, so what grows and shrinks are cores and memory: a job shrinks to
//    where its class's ladder begins, so that those grow whose rate rises by it, and gives back at
//    once when somebody comes.
//
// A stop and a move cost a restart, so slices are longer than the original's minute. Moves are made
// for jobs that have run for long enough that they may be expected to run on for longer than that.
#include "policy/cluster/common/elastic.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/cluster/common/pack.h"
#include "policy/policies.h"

enum { TRIES = 256, PATIENCE = 20, MOVES = 4, SHAPES = 32 };

#define SLOWEST 0.25  // in a pack, against being alone

#define SETTINGS(X)                                                                                \
    X(period_s, int, 900, 1, 86400, "of a time slice")                                             \
    X(joint, double, 1.3, 1.0, 2.0, "a pack is kept if it gets more than this done together")      \
    X(grow, int, 2, 0, 2, "into cores and memory: 1 that nobody uses, 2 that nobody needs")

typedef struct GandivaSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} GandivaSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(GandivaSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Alone {  // jobs that found no company in this plan
    uint32_t class, gpus, types;
} Alone;

typedef struct Gandiva {
    PlanBuilder    builder;
    ElasticScaling elastic;
    QueueNode     *nodes;                          // [n_slots]
    uint32_t      *left_over, *holders, *expired;  // [n_slots]
    uint32_t       n_left_over, n_hosts, n_expired;
    double        *joint;  // [classes][classes] of packs with the share of one; 0: not known yet
    Alone          alone[SHAPES];
    uint32_t       n_alone;
    TimeNs         period, due;
    double         least_joint;
    bool           grows;
} Gandiva;

static void lay_out(Gandiva *g, const ClusterSetup *s, Carve *from) {
    size_t classes = s->profiles != NULL ? s->profiles->n : 0;
    plan_builder_carve(&g->builder, s, from);
    elastic_carve(&g->elastic, s, from);
    g->nodes = carve(from, QueueNode, s->n_slots);
    g->left_over = carve(from, uint32_t, s->n_slots);
    g->holders = carve(from, uint32_t, s->n_slots);
    g->expired = carve(from, uint32_t, s->n_slots);
    g->joint = carve(from, double, classes *classes);
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Gandiva g = {0};
    Carve   c = {.used = sizeof g};
    lay_out(&g, s, &c);
    return c.used;
}

static double gain(const void *of, const ClusterView *v, uint32_t slot, double from, double to) {
    (void)of;
    return (to - from) * v->tasks[slot].job.gpus;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    const GandivaSettings *cfg = settings;
    Gandiva               *g = state;
    Carve                  c = {.base = state, .used = sizeof *g};
    lay_out(g, s, &c);
    plan_builder_init(&g->builder, s);
    g->builder.free.roomy = true;
    g->elastic.gain = gain;
    g->period = cfg->period_s * CLUSTER_SECOND;
    g->least_joint = cfg->joint;
    g->grows = cfg->grow != 0;
    g->elastic.lean = cfg->grow > 1;
    g->due = INT64_MAX;
}

// Cores or memory, less than it asks for.
static bool lacks(const ClusterTask *t) {
    const ClusterSlice *s = &t->slices[0];
    uint64_t            all = t->job.gpus;
    return (s->cores_milli + 1) * all <= (uint64_t)t->job.cores_milli * s->gpus ||
           (s->memory_mib + 1) * all <= (uint64_t)t->job.memory_mib * s->gpus;
}

// Those whose company has gone have their GPUs, and what else they ask for, to themselves.
static void restore(Gandiva *g, const ClusterView *v) {
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        bool               whole = t->slices[0].gpu_milli == t->job.gpu_milli;
        if (t->job.gpus > 0 && (whole ? lacks(t) : pack_alone(&g->builder, v->running[i])))
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

// Those of left_over that found a place by now are taken out.
static void sweep(Gandiva *g) {
    uint32_t kept = 0, n = 0;
    for (uint32_t i = 0; i < g->n_left_over; i++)
        if (plan_builder_slices(&g->builder, g->left_over[i], &n) == NULL)
            g->left_over[kept++] = g->left_over[i];
    g->n_left_over = kept;
}

static void add_host(Gandiva *g, const ClusterView *v, uint32_t slot) {
    uint32_t            n = 0;
    const ClusterSlice *s = plan_builder_slices(&g->builder, slot, &n);
    if (n > 0 && s->gpus > 0 && s->gpu_milli == CLUSTER_WHOLE_GPU &&
        v->tasks[slot].job.class != CLUSTER_NONE)
        g->holders[g->n_hosts++] = slot;
}

// Those that run, and those that are to be started.
static void find_hosts(Gandiva *g, const ClusterView *v) {
    g->n_hosts = g->n_alone = 0;
    if (v->setup->profiles == NULL) return;
    for (uint32_t i = 0; i < v->n_running; i++) add_host(g, v, v->running[i]);
    for (uint32_t i = 0; i < g->builder.n_touched; i++)
        if (v->tasks[g->builder.touched[i]].state == CLUSTER_WAITING)
            add_host(g, v, g->builder.touched[i]);
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

static bool lonely(const Gandiva *g, const ClusterJob *j) {
    for (uint32_t i = 0; i < g->n_alone; i++) {
        const Alone *x = &g->alone[i];
        if (x->class == j->class && x->gpus == j->gpus && x->types == j->gpu_types) return true;
    }
    return false;
}

// Beside whom the two together would do the most; by index into holders.
static uint32_t best_host(Gandiva *g, const ClusterView *v, const ClusterJob *j) {
    uint32_t best = CLUSTER_NONE;
    double   most = 0.9 * g->least_joint;  // what is free there may make up for it
    for (uint32_t i = 0; i < g->n_hosts; i++) {
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
    for (uint32_t i = 0; i < g->n_left_over && g->n_hosts > 0; i++) {
        const ClusterJob *j = &v->tasks[g->left_over[i]].job;
        PackSplit         split;
        if (j->class == CLUSTER_NONE || lonely(g, j)) continue;
        uint32_t h = best_host(g, v, j);
        bool     fits =
            h != CLUSTER_NONE && pack_try(&g->builder, g->holders[h], g->left_over[i], &split) &&
            split.sum > g->least_joint && split.rate[0] > SLOWEST && split.rate[1] > SLOWEST &&
            pack_join(&g->builder, g->holders[h], g->left_over[i], &split);
        if (fits)
            g->holders[h] = g->holders[--g->n_hosts];
        else if (g->n_alone < SHAPES)
            g->alone[g->n_alone++] = (Alone){j->class, j->gpus, j->gpu_types};
    }
    sweep(g);
}

// Those that have had their slice, who began first at the front.
static void find_expired(Gandiva *g, const ClusterView *v) {
    g->n_expired = 0;
    for (uint32_t i = 0; i < v->n_running; i++)
        if (v->now - v->tasks[v->running[i]].since >= g->period)
            g->expired[g->n_expired++] = v->running[i];
}

// Who has waited very long gets a place whoever has to make room, but one at a time.
static void take_turns(Gandiva *g, const ClusterView *v) {
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
    sweep(g);
}

static bool settled(const ClusterView *v, const ClusterTask *t) {
    return cluster_held(v, t) > 4 * cluster_restart(v->setup, &t->job);
}

// The server on which the fewest GPUs have to become free for a gang.
static uint32_t nearly_free(const Gandiva *g, const ClusterView *v, const ClusterJob *j) {
    const FreeResources *f = &g->builder.free;
    uint32_t             best = CLUSTER_NONE, most = 0;
    for (uint32_t i = 0; i < v->setup->n_servers; i++) {
        const ClusterServer *s = &v->setup->servers[i];
        if (!cluster_type_fits(v->setup, j, i) || s->gpus < j->gpus || f->gpus[i] <= most) continue;
        best = i;
        most = f->gpus[i];
    }
    return best;
}

// Small jobs leave a server for others; if one finds no place there, nobody moves.
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
        if (!whole || t->job.gpus > need || t->job.gpus * 2 > j->gpus || !settled(v, t)) continue;
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
    sweep(g);
}

// Who came last to a pack gets GPUs of its own.
static void part(Gandiva *g, const ClusterView *v) {
    for (uint32_t i = v->n_running; i-- > 0 && g->builder.free.n_free > 0;) {
        uint32_t           slot = v->running[i], mate = pack_corunner(v, slot), n = 0;
        const ClusterTask *t = &v->tasks[slot];
        if (t->job.gpu_milli < CLUSTER_WHOLE_GPU || mate == CLUSTER_NONE || !settled(v, t))
            continue;
        if (plan_builder_moves(&g->builder, mate) ||
            plan_builder_slices(&g->builder, slot, &n) == NULL)
            continue;
        plan_builder_stop(&g->builder, slot);
        if (plan_builder_place(&g->builder, slot)) {
            if (pack_alone(&g->builder, mate)) pack_restore(&g->builder, mate);
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
    if (round || g->due == INT64_MAX) g->due = (v->now / g->period + 1) * g->period;
    if (v->n_waiting == 0) g->due = INT64_MAX;
    plan_builder_begin(&g->builder, v);
    restore(g, v);
    if (v->n_waiting > 0 && g->grows) elastic_shrink(&g->elastic, &g->builder);
    start(g, v);
    if (g->n_left_over > 0) {
        find_hosts(g, v);
        pack(g, v);
    }
    if (g->n_left_over > 0 && round) {
        defragment(g, v);
        take_turns(g, v);
    }
    if (g->n_left_over == 0) part(g, v);
    if (g->grows) elastic_run(&g->elastic, &g->builder);
    uint32_t n = plan_builder_write(&g->builder, out);
    if (g->due < INT64_MAX) out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = g->due};
    return n;
}

const ClusterPolicy cluster_policy_gandiva = {
    .name = "gandiva",
    .about = "packs of two where that gets more done, else time slices; moves make room for gangs",
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
