// optimus: the next unit of a resource goes to the job with the largest cut in remaining time
//
// 1. The first unit of a job is its gang of GPUs at the lowest allocation level of its class. Jobs
//    get it in ascending order of remaining time x the largest fraction of the cluster's GPUs,
//    cores or memory they request: least cost first. A running job is preempted for one that
//    cost_of less by the factor `preempt_ratio`.
// 2. Further units are the class's higher levels of cores and memory on the job's server. Each goes
//    to the job with the largest relative cut in remaining time per fraction of the server's cores
//    or memory, until no job gains. Relative, because a job that speeds up returns the unit sooner.
// 3. A gang is placed on as few servers as possible and on the one with the most free cores; gangs
//    on several servers keep their default amounts.
//
// 4. With elastic jobs, GPUs come first: those that are free or held by elastic jobs are divided
//    among these and the jobs that wait, step by step (GpuSplit), for a large sum of rates over
//    remaining times to the power of `urgency`. Remaining times include the restart of a job that
//    changes.
//
// Everything is decided anew when jobs arrive and end and, while some wait, every period. Changes
// of cores and memory are free of cost.
#include <math.h>

#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/elastic.h"
#include "policy/cluster/common/gpu_split.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/policies.h"

enum { TRIES = 64 };  // consecutive jobs that do not fit before a pass ends

#define SETTINGS(X)                                                                                \
    X(period_s, int, 600, 1, 86400, "seconds between decisions while jobs wait")                   \
    X(preempt_ratio, double, 1.2, 1.0, 1e9,                                                        \
      "a job is preempted for one that costs this factor less")                                    \
    X(urgency, double, 0.7, 0.0, 4.0, "elastic jobs gain by remaining time to this power")

typedef struct OptimusSettings {
    SETTINGS(SETTING_FIELD)
} OptimusSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(OptimusSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Optimus {
    PlanBuilder    builder;
    ElasticScaling elastic;
    GpuSplit       split;
    QueueNode     *nodes;    // [n_slots]
    PriorityQueue  waiting;  // by cost
    uint32_t      *victims;  // [n_slots] largest cost first
    uint32_t      *failed;   // [n_slots]
    uint32_t       n_victims, n_failed;
    uint64_t       seen;  // the last entry number in the queue
    TimeNs         period, due;
    double         preempt_ratio, urgency;
} Optimus;

static void lay_out(Optimus *o, const ClusterSetup *s, Carve *from) {
    plan_builder_carve(&o->builder, s, from);
    elastic_carve(&o->elastic, s, from);
    gpu_split_carve(&o->split, s, from);
    o->nodes = carve(from, QueueNode, s->n_slots);
    o->victims = carve(from, uint32_t, s->n_slots);
    o->failed = carve(from, uint32_t, s->n_slots);
}

CLUSTER_POLICY_STATE(Optimus)

// Where durations are unknown, as much work is assumed left as was done.
static double left_s(const ClusterView *v, const ClusterTask *t) {
    TimeNs left = cluster_left(v, t);
    if (left < 0) left = cluster_held(v, t) + CLUSTER_SECOND;
    return (double)left / (double)CLUSTER_SECOND;
}

// Cost of finishing a job: remaining time x the largest fraction of a cluster resource it requests.
static double cost_of(const ClusterView *v, const ClusterTask *t) {
    const ClusterSetup *s = v->setup;
    double              gpus = (double)cluster_gpu_milli(&t->job) / (1e3 * (double)s->gpus);
    double              cores = t->job.cores_milli / ((double)s->cores_milli + 1);
    double              memory = t->job.memory_mib / ((double)s->memory_mib + 1);
    double              most = cores > memory ? cores : memory;
    return left_s(v, t) * (gpus > most ? gpus : most);
}

static double cut(const void *self, const ClusterView *v, uint32_t slot, double from, double to) {
    (void)self;
    (void)v;
    (void)slot;
    return from > 0 ? to / from - 1 : 1e18;
}

// The rate that ends the job as late as the restart and the rate afterwards do.
static double rate_of(const ClusterView *v, const ClusterTask *t, uint32_t gpus, double left) {
    double rate = rate_scaling(v->setup, &t->job, gpus);
    bool   changes =
        t->state == CLUSTER_RUNNING && gpus != cluster_slices_gpus(t->slices, t->n_slices);
    if (!changes) return rate;
    double restart = (double)cluster_restart(v->setup, &t->job) / (double)CLUSTER_SECOND;
    return left / (restart + left / rate);
}

static double value(const void *self, const ClusterView *v, uint32_t slot, uint32_t gpus) {
    const Optimus     *o = self;
    const ClusterTask *t = &v->tasks[slot];
    double             left = left_s(v, t) + 1e-3;
    return rate_of(v, t, gpus, left) * pow(left, -o->urgency);
}

static ClusterJob at_lowest_level(const void *self, const ClusterSetup *s, const ClusterJob *j) {
    const Optimus *o = self;
    ClusterJob     x = *j;
    double         cores = 0, mib = 0;
    elastic_base(&o->elastic, s, j, &cores, &mib);
    double all = j->gpus > 0 ? j->gpus : 1;
    x.cores_milli = plan_builder_amount(cores * all);
    x.memory_mib = plan_builder_amount(mib * all);
    return x;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    const OptimusSettings *cfg = settings;
    Optimus               *o = state_open(state, s);
    o->builder.free.worst_fit = true;
    o->elastic.gain = cut;
    o->elastic.lean = true;
    o->waiting = (PriorityQueue){o->nodes, CLUSTER_NONE};
    o->period = cfg->period_s * CLUSTER_SECOND;
    o->preempt_ratio = cfg->preempt_ratio;
    o->urgency = cfg->urgency;
    o->split.value = value;
    o->split.demand = at_lowest_level;
    o->split.self = o;
    o->due = INT64_MAX;
}

static void enqueue(Optimus *o, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    priority_queue_push(&o->waiting, slot, (SortKey){cost_of(v, t), (double)t->job.submit},
                        t->entry);
}

static void enqueue_new(Optimus *o, const ClusterView *v) {
    uint32_t from = waiting_since(v, o->seen);
    for (uint32_t i = from; i < v->n_waiting; i++) enqueue(o, v, v->waiting[i]);
    if (from < v->n_waiting) o->seen = v->tasks[v->waiting[v->n_waiting - 1]].entry;
}

// Running tasks by descending cost.
static void find_victims(Optimus *o, const ClusterView *v) {
    PriorityQueue l = {o->nodes, CLUSTER_NONE};
    o->n_victims = 0;
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        if (t->job.gpus > 0)
            priority_queue_push(&l, v->running[i], (SortKey){-cost_of(v, t), 0}, t->entry);
    }
    for (uint32_t slot; (slot = priority_queue_pop(&l)) != CLUSTER_NONE;)
        o->victims[o->n_victims++] = slot;
}

// Number of victims that cost enough more than a task to be preempted for it.
static uint32_t n_preemptible(const Optimus *o, const ClusterView *v, const ClusterTask *t) {
    uint32_t low = 0, high = o->n_victims;
    double   mine = cost_of(v, t) * o->preempt_ratio;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (cost_of(v, &v->tasks[o->victims[middle]]) > mine)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool waits(const Optimus *o, uint32_t slot) {
    uint32_t n = 0;
    return plan_builder_slices(&o->builder, slot, &n) == NULL;
}

// Elastic jobs and the first of those that wait; the others wait in the queue, which is made anew.
static void divide(Optimus *o, const ClusterView *v) {
    uint64_t gpus = o->builder.free.n_free;
    o->split.n = 0;
    for (uint32_t i = 0; i < v->n_running; i++) gpus += gpu_split_add(&o->split, v, v->running[i]);
    for (uint32_t slot; (slot = priority_queue_pop(&o->waiting)) != CLUSTER_NONE;)
        if (v->tasks[slot].job.gpus > 0) (void)gpu_split_add(&o->split, v, slot);
    gpu_split_run(&o->split, gpus);
    gpu_split_apply(&o->split, &o->builder);
    for (uint32_t i = 0; i < v->n_waiting; i++)
        if (waits(o, v->waiting[i])) enqueue(o, v, v->waiting[i]);
}

static void start(Optimus *o, const ClusterView *v) {
    uint32_t in_a_row = 0;
    bool     listed = false;
    o->n_failed = 0;
    for (uint32_t slot;
         in_a_row < TRIES && (slot = priority_queue_pop(&o->waiting)) != CLUSTER_NONE;) {
        const ClusterTask *t = &v->tasks[slot];
        ClusterJob         j = at_lowest_level(o, v->setup, &t->job);
        bool               placed = plan_builder_place_as(&o->builder, slot, &j);
        if (!placed && t->job.gpus > 0) {
            if (!listed) find_victims(o, v);
            listed = true;
            placed =
                plan_builder_preempt(&o->builder, slot, &j, o->victims, n_preemptible(o, v, t));
        }
        if (!placed) o->failed[o->n_failed++] = slot;
        in_a_row = placed ? 0 : in_a_row + 1;
    }
    for (uint32_t i = 0; i < o->n_failed; i++) enqueue(o, v, o->failed[i]);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Optimus *o = state;
    bool     round = v->now >= o->due || v->setup->round > 0;
    (void)max;
    if (round || o->due == INT64_MAX) o->due = period_after(v->now, o->period);
    if (v->n_waiting == 0 && !v->setup->elastic) o->due = INT64_MAX;
    plan_builder_begin(&o->builder, v);
    if (v->setup->elastic) o->seen = 0;
    if (v->setup->elastic) o->waiting.head = CLUSTER_NONE;
    enqueue_new(o, v);
    if (v->n_waiting > 0 || v->setup->elastic) elastic_shrink(&o->elastic, &o->builder);
    if (v->setup->elastic) divide(o, v);
    if (v->n_waiting > 0) start(o, v);
    elastic_run(&o->elastic, &o->builder);
    uint32_t n = plan_builder_write(&o->builder, out);
    if (o->due < INT64_MAX) out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = o->due};
    return n;
}

const ClusterPolicy cluster_policy_optimus = {
    .name = "optimus",
    .about = "each next unit of GPUs, cores or memory where it cuts the most remaining time",
    .paper = "Optimus (EuroSys 2018)",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(OptimusSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
