// synergy_fair, synergy_greedy, synergy_tune: cores and memory by sensitivity
//
// In every round all jobs are released and placed anew, in the order of a queue. The policies
// differ in the cores and memory of a job:
//
// fair    the share that goes with its GPUs.
// greedy  its best demand, or it waits.
// tune    its best demand where there is room; a job that does not fit gets its share, and jobs
// with
//         more than their share give the excess back for it.
//
// Outside its own rules (--like synergy) a stop costs a restart, so running jobs stay where they
// are unless a gang fits nowhere, and get other amounts of cores and memory only.
#include <string.h>

#include "base/err.h"
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/plan_builder.h"
#include "policy/cluster/synergy/synergy_plan.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(order, string, "srtf", 1, 16, "queue order: fifo, srtf, las or ftf")                         \
    X(period_s, int, 0, 0, 86400, "seconds between rounds; 0: every event; not with --like")       \
    X(repack_s, int, 900, 0, 86400, "least seconds between placing all jobs anew for a gang")

typedef struct SynergySettings {
    SETTINGS(SETTING_FIELD)
} SynergySettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(SynergySettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef enum SynergyOrder {
    SYNERGY_BY_FIFO,
    SYNERGY_BY_SRTF,
    SYNERGY_BY_LAS,
    SYNERGY_BY_FTF,
    SYNERGY_ORDERS
} SynergyOrder;

typedef struct Synergy {
    SynergyPlan  plan;
    PlanBuilder  builder;
    SynergyOrder order;
    TimeNs       period, repack;
    TimeNs       repacked;        // time of the last placement of all jobs anew
    uint32_t    *queue, *picked;  // [n_slots] in the order of the last round
    uint32_t     n_queue;
    uint64_t     seen;  // the last entry number in the queue
} Synergy;

static const TimeNs aged_ns = INT64_C(1000) * 3600 * CLUSTER_SECOND;

static SynergyOrder order_of(const char *name) {
    static const char *const names[SYNERGY_ORDERS] = {"fifo", "srtf", "las", "ftf"};
    SynergyOrder             o = 0;
    while (o < SYNERGY_ORDERS && strcmp(names[o], name) != 0) o++;
    return o;
}

static Err load(const ClusterSetup *s, const void *settings, Arena *a, const void **loaded) {
    const SynergySettings *cfg = settings;
    (void)a;
    *loaded = NULL;
    for (uint32_t i = 1; i < s->n_servers; i++)
        if (s->servers[i].gpus != s->servers[0].gpus || s->servers[i].type != s->servers[0].type)
            return err_set(ERR_ARG,
                           "synergy needs servers with equal GPUs; %s has %u GPUs of type %u, "
                           "%s %u of type %u",
                           s->servers[0].name, s->servers[0].gpus, s->servers[0].type,
                           s->servers[i].name, s->servers[i].gpus, s->servers[i].type);
    if (s->fractions || s->no_gpus)
        return err_set(ERR_ARG, "synergy needs jobs with whole GPUs; %s",
                       s->fractions ? "some request a fraction"
                                    : "some request none: --min-gpus 1 leaves them out");
    if (order_of(cfg->order) == SYNERGY_ORDERS)
        return err_set(ERR_ARG, "order=%.40s: choose fifo, srtf, las or ftf", cfg->order);
    return ERR_OK;
}

static void lay_out(Synergy *y, const ClusterSetup *s, Carve *from) {
    y->queue = carve(from, uint32_t, s->n_slots);
    y->picked = carve(from, uint32_t, s->n_slots);
    synergy_plan_carve(&y->plan, s, from);
    if (!s->in_rounds) plan_builder_carve(&y->builder, s, from);
}

CLUSTER_POLICY_STATE(Synergy)

static void init_mode(void *state, const ClusterSetup *s, const void *settings, SynergyMode mode) {
    const SynergySettings *cfg = settings;
    Synergy               *y = state_open(state, s);
    y->plan.mode = mode;
    y->order = order_of(cfg->order);
    CHECK(y->order < SYNERGY_ORDERS);
    y->period = cfg->period_s * CLUSTER_SECOND;
    y->repack = cfg->repack_s * CLUSTER_SECOND;
    y->repacked = -y->repack;
}

static double seconds(TimeNs t) { return (double)t / (double)CLUSTER_SECOND; }

static double left_s(const Synergy *y, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    double             left = v->setup->in_rounds
                                  ? seconds(t->job.iteration) * (double)(t->job.iterations - t->done)
                                  : seconds(cluster_left(v, t));
    return y->plan.mode == SYNERGY_FAIR ? left : left / y->plan.tasks[slot].speed;
}

static double key(const Synergy *y, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    double             submitted = seconds(t->job.submit);
    double alone = v->setup->in_rounds ? seconds(t->job.iteration) * (double)t->job.iterations
                                       : seconds(cluster_left(v, t) + cluster_held(v, t));
    switch (y->order) {
    case SYNERGY_BY_SRTF: return left_s(y, v, slot);
    case SYNERGY_BY_LAS: return seconds(cluster_held(v, t)) * t->job.gpus;
    case SYNERGY_BY_FTF: return (seconds(v->now) - submitted + left_s(y, v, slot)) / alone;
    default: return submitted;
    }
}

// A job without GPUs for 1000 hours goes before all others, except in fifo.
static bool before(const Synergy *y, const ClusterView *v, uint32_t a, uint32_t b) {
    const SynergyTask *x = &y->plan.tasks[a], *z = &y->plan.tasks[b];
    double             of_a = key(y, v, a), of_b = key(y, v, b);
    if (y->order != SYNERGY_BY_FIFO && x->aged != z->aged) return x->aged;
    if (of_a != of_b) return of_a < of_b;
    return v->tasks[a].job.submit < v->tasks[b].job.submit;
}

static void sort_queue(Synergy *y, const ClusterView *v) {
    for (uint32_t i = 1; i < y->n_queue; i++) {
        uint32_t x = y->queue[i], at = i;
        for (; at > 0 && before(y, v, x, y->queue[at - 1]); at--) y->queue[at] = y->queue[at - 1];
        y->queue[at] = x;
    }
}

static void find_best(const ClusterView *v, const ClusterTask *t, SynergyTask *x) {
    x->class = t->job.class;
    x->best_speed = x->speed = gang_demand_best(v->setup, &t->job, &x->best);
}

static void enqueue(Synergy *y, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    SynergyTask       *x = &y->plan.tasks[slot];
    if (x->id == t->job.id + 1) return;
    *x = (SynergyTask){.id = t->job.id + 1, .left_at = t->job.submit, .servers = t->job.servers};
    find_best(v, t, x);
    y->queue[y->n_queue++] = slot;
}

// Drops ended jobs and appends new ones, and running ones that another policy started.
static void update_queue(Synergy *y, const ClusterView *v) {
    uint32_t kept = 0, from = waiting_since(v, y->seen);
    for (uint32_t i = 0; i < y->n_queue; i++) {
        const ClusterTask *t = &v->tasks[y->queue[i]];
        SynergyTask       *x = &y->plan.tasks[y->queue[i]];
        if (t->state == CLUSTER_GONE || x->id != t->job.id + 1) continue;
        if (t->state == CLUSTER_RUNNING) x->left_at = v->now;
        if (x->class != t->job.class) find_best(v, t, x);
        x->servers = t->job.servers;
        y->queue[kept++] = y->queue[i];
    }
    y->n_queue = kept;
    for (; from < v->n_waiting; from++) {
        enqueue(y, v, v->waiting[from]);
        y->seen = v->tasks[v->waiting[from]].entry;
    }
    for (uint32_t i = 0; i < v->n_running; i++) enqueue(y, v, v->running[i]);
}

// A running job that may not be preempted.
static bool stays_put(const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    return t->state == CLUSTER_RUNNING && !cluster_may_preempt(v->setup, t, v->now);
}

// Jobs in queue order while GPUs last; of these, running ones are placed first.
static uint32_t pick_staying(Synergy *y, const ClusterView *v) {
    uint64_t free = y->plan.n_free;
    uint32_t n = 0, runs = 0;
    for (uint32_t i = 0; i < y->n_queue; i++) {
        uint32_t slot = y->queue[i], gpus = v->tasks[slot].job.gpus, at = n;
        if (gpus > free || stays_put(v, slot)) continue;
        free -= gpus;
        bool stays = v->tasks[slot].state == CLUSTER_RUNNING;
        for (; stays && at > runs; at--) y->picked[at] = y->picked[at - 1];
        y->picked[at] = slot;
        runs += stays;
        n++;
    }
    return n;
}

// las picks jobs by GPUs before any is placed and then, in tune, places larger ones first.
static uint32_t pick(Synergy *y, const ClusterView *v) {
    uint64_t free = y->plan.n_free;
    uint32_t n = 0;
    for (uint32_t i = 0; i < y->n_queue; i++) {
        uint32_t slot = y->queue[i], gpus = v->tasks[slot].job.gpus, at = n;
        if (stays_put(v, slot)) continue;
        if (y->order == SYNERGY_BY_LAS && gpus > free) continue;
        if (y->order == SYNERGY_BY_LAS) free -= gpus;
        bool by_size = y->order == SYNERGY_BY_LAS && y->plan.mode == SYNERGY_TUNE;
        for (; by_size && at > 0 && gpus > v->tasks[y->picked[at - 1]].job.gpus; at--)
            y->picked[at] = y->picked[at - 1];
        y->picked[at] = slot;
        n++;
    }
    return n;
}

static bool same(const SynergyPlan *p, const SynergyTask *x, const ClusterTask *t) {
    if (t->state != CLUSTER_RUNNING || x->n != t->n_slices) return false;
    for (uint32_t i = 0; i < x->n; i++) {
        const ClusterSlice *a = &p->slices[x->first + i], *b = &t->slices[i];
        if (a->server != b->server || a->gpus != b->gpus || a->cores_milli != b->cores_milli ||
            a->memory_mib != b->memory_mib)
            return false;
    }
    return true;
}

// Jobs with unchanged slices are left alone; all others are preempted before any starts.
static uint32_t write_actions(const Synergy *y, const ClusterView *v, ClusterAction *out) {
    const SynergyPlan *p = &y->plan;
    uint32_t           n = 0;
    for (uint32_t i = 0; i < y->n_queue; i++) {
        const ClusterTask *t = &v->tasks[y->queue[i]];
        if (t->state == CLUSTER_RUNNING && !same(p, &p->tasks[y->queue[i]], t))
            out[n++] = (ClusterAction){.verb = CLUSTER_PREEMPT, .task = y->queue[i]};
    }
    for (uint32_t i = 0; i < y->n_queue; i++) {
        const SynergyTask *x = &p->tasks[y->queue[i]];
        if (x->n == 0 || same(p, x, &v->tasks[y->queue[i]])) continue;
        out[n++] = (ClusterAction){.verb = CLUSTER_START,
                                   .task = y->queue[i],
                                   .slices = p->slices + x->first,
                                   .n_slices = x->n};
    }
    return n;
}

static bool moves(const SynergyPlan *p, const SynergyTask *x, const ClusterTask *t) {
    if (x->n != t->n_slices) return true;
    for (uint32_t i = 0; i < x->n; i++)
        if (p->slices[x->first + i].server != t->slices[i].server ||
            p->slices[x->first + i].gpus != t->slices[i].gpus)
            return true;
    return false;
}

// The lowest GPUs that are wholly free, as far as there are any.
static void choose_gpus(const PlanBuilder *d, ClusterSlice *s) {
    const uint16_t *parts = d->free.parts + d->free.first[s->server];
    uint32_t        left = s->gpus, n = d->view->setup->servers[s->server].gpus;
    for (uint32_t g = 0; left > 0 && g < n; g++) {
        if (parts[g] < CLUSTER_WHOLE_GPU) continue;
        s->mask |= UINT64_C(1) << g;
        left--;
    }
}

// False: co-runners that another policy put there, or its kind of slices, leave no room.
static bool put(Synergy *y, const ClusterView *v, uint32_t slot, bool stays) {
    const SynergyPlan *p = &y->plan;
    const SynergyTask *x = &p->tasks[slot];
    for (uint32_t k = 0; k < x->n; k++) {
        ClusterSlice *s = &p->slices[x->first + k];
        s->mask = stays ? v->tasks[slot].slices[k].mask : 0;
        s->gpu_milli = CLUSTER_WHOLE_GPU;
        if (!stays) choose_gpus(&y->builder, s);
        if ((uint32_t)__builtin_popcountll(s->mask) != s->gpus) return false;
    }
    return plan_builder_put(&y->builder, slot, p->slices + x->first, x->n);
}

// A running job on whole GPUs of its own: only its amounts change.
static void resize_only(Synergy *y, uint32_t slot) {
    const SynergyTask  *x = &y->plan.tasks[slot];
    const ClusterSlice *s = &y->plan.slices[x->first];
    if (x->n > 0)
        (void)plan_builder_resize(&y->builder, slot, CLUSTER_WHOLE_GPU,
                                  (double)s->cores_milli / s->gpus,
                                  (double)s->memory_mib / s->gpus);
}

// With restart costs: a job that stays on its GPUs is resized instead of preempted. A job whose
// GPUs are not to be had waits.
static uint32_t write_resizes(Synergy *y, const ClusterView *v, ClusterAction *out) {
    const SynergyPlan *p = &y->plan;
    plan_builder_begin(&y->builder, v);
    for (uint32_t i = 0; i < v->n_running; i++)
        if (!stays_put(v, v->running[i])) plan_builder_stop(&y->builder, v->running[i]);
    for (uint32_t i = 0; i < v->n_running; i++)
        if (stays_put(v, v->running[i])) resize_only(y, v->running[i]);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < y->n_queue; i++) {
            uint32_t           slot = y->queue[i];
            const SynergyTask *x = &p->tasks[slot];
            uint32_t           has = 0;
            (void)plan_builder_slices(&y->builder, slot, &has);
            if (x->n == 0 || has > 0) continue;
            bool stays = !moves(p, x, &v->tasks[slot]);
            if (pass == 1 || stays) (void)put(y, v, slot, pass == 0);
        }
    return plan_builder_write(&y->builder, out);
}

// Where the cluster has no rounds: whole periods, or every event.
static bool is_round(const Synergy *y, const ClusterView *v) {
    return v->setup->round > 0 || y->period == 0 || v->now % y->period == 0;
}

static void begin(Synergy *y, const ClusterView *v, bool keep_running) {
    synergy_plan_begin(&y->plan, keep_running ? v : NULL);
    for (uint32_t i = 0; i < y->n_queue; i++) {
        SynergyTask *x = &y->plan.tasks[y->queue[i]];
        x->n = 0;
        x->speed = x->best_speed;
        if (!v->setup->in_rounds && stays_put(v, y->queue[i]))
            synergy_plan_keep(&y->plan, &v->tasks[y->queue[i]], y->queue[i]);
    }
}

// A picked job has no GPUs, or is spread over more servers than it needs.
static bool needs_repack(const Synergy *y, const ClusterView *v, uint32_t picked) {
    for (uint32_t i = 0; i < picked; i++) {
        uint32_t n = y->plan.tasks[y->picked[i]].n;
        if (n == 0 || (n > 1 && v->tasks[y->picked[i]].job.gpus <= v->setup->most_gpus))
            return true;
    }
    return false;
}

// Running jobs stay, unless a gang fits nowhere; then all are placed anew.
static uint32_t plan_incremental(Synergy *y, const ClusterView *v, ClusterAction *out) {
    begin(y, v, true);
    uint32_t picked = pick_staying(y, v);
    for (uint32_t i = 0; i < picked; i++) synergy_plan_add(&y->plan, y->picked[i]);
    if (v->now - y->repacked >= y->repack && needs_repack(y, v, picked)) {
        y->repacked = v->now;
        begin(y, v, false);
        picked = pick(y, v);
        for (uint32_t i = 0; i < picked; i++) synergy_plan_add(&y->plan, y->picked[i]);
    }
    for (uint32_t i = 0; y->plan.mode == SYNERGY_TUNE && i < y->n_queue; i++)
        synergy_plan_raise(&y->plan, y->queue[i]);
    return write_resizes(y, v, out);
}

static uint32_t plan_round(Synergy *y, const ClusterView *v, ClusterAction *out) {
    begin(y, v, false);
    uint32_t picked = pick(y, v);
    for (uint32_t i = 0; i < picked; i++) synergy_plan_add(&y->plan, y->picked[i]);
    return write_actions(y, v, out);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Synergy *y = state;
    uint32_t n = 0;
    (void)max;
    if (is_round(y, v)) {
        update_queue(y, v);
        sort_queue(y, v);
        for (uint32_t i = 0; i < y->n_queue; i++) {
            SynergyTask *x = &y->plan.tasks[y->queue[i]];
            x->aged = x->aged || v->now - x->left_at > aged_ns;
        }
        n = v->setup->in_rounds ? plan_round(y, v, out) : plan_incremental(y, v, out);
    }
    if (v->setup->round == 0 && y->period > 0)
        out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = period_after(v->now, y->period)};
    return n;
}

#define SYNERGY_POLICY(id, mode, about_)                                                           \
    static void init_##id(void *state, const ClusterSetup *s, const void *settings,                \
                          const void *loaded) {                                                    \
        (void)loaded;                                                                              \
        init_mode(state, s, settings, mode);                                                       \
    }                                                                                              \
    const ClusterPolicy cluster_policy_##id = {.name = #id,                                        \
                                               .about = about_,                                    \
                                               .paper = "Synergy (OSDI 2022)",                     \
                                               .knows = CLUSTER_ORACLE,                            \
                                               .preempts = true,                                   \
                                               .rows = rows,                                       \
                                               .n_rows = sizeof rows / sizeof *rows,               \
                                               .settings_size = sizeof(SynergySettings),           \
                                               .load = load,                                       \
                                               .state_size = state_size,                           \
                                               .init = init_##id,                                  \
                                               .decide = decide};

SYNERGY_POLICY(synergy_fair, SYNERGY_FAIR,
               "every job has the share of cores and memory that goes with its GPUs")
SYNERGY_POLICY(synergy_greedy, SYNERGY_GREEDY,
               "every job has its best demand of cores and memory, or waits")
SYNERGY_POLICY(synergy_tune, SYNERGY_TUNE,
               "best demand of cores and memory; excess over the share is given back when needed")
