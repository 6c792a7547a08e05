// optimus: the next unit of anything goes to whom it cuts the most remaining time
//
// 1. The first unit of a job is its gang of GPUs, with as few cores and as little memory as its
//    class makes do with. Such units go to the jobs that need the least to their end, time by the
//    larger part of what there is that they take: that cuts the most waiting for what it costs. Who
//    runs stops for one that needs less by more than a restart is worth.
// 2. Further units are the levels of the class's ladder of cores and memory on the job's server.
//    Each goes to the job whose remaining time it cuts by the largest part, for the larger part of
//    the server's cores or memory that it takes, until nobody gains. The part of it is what counts:
//    who gains from a unit gives it back the sooner.
// 3. Gangs are put on as few servers as can be, and on the one with the most to spare; those on
//    several keep their default.
//
// Everything is thought over when jobs come and end and, while some wait, in periods. Changing
// cores and memory costs nothing, so nobody keeps what others need more.
#include "policy/cluster/common/elastic.h"
#include "policy/cluster/common/priority_queue.h"
#include "policy/policies.h"

enum { TRIES = 64 };  // in a row that find no place

#define SETTINGS(X)                                                                                \
    X(period_s, int, 600, 1, 86400, "between rounds, while jobs wait")                             \
    X(stop, double, 1.2, 1.0, 1e9, "who needs so many times as much stops for another")

typedef struct OptimusSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} OptimusSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(OptimusSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Optimus {
    PlanBuilder    builder;
    ElasticScaling elastic;
    QueueNode     *nodes;    // [n_slots]
    PriorityQueue  waiting;  // by what they need
    uint32_t      *victims;  // [n_slots] who needs most first
    uint32_t      *failed;   // [n_slots]
    uint32_t       n_victims, n_failed;
    uint64_t       seen;  // the last entry that stands in line
    TimeNs         period, due;
    double         stop;
} Optimus;

static void lay_out(Optimus *o, const ClusterSetup *s, Carve *from) {
    plan_builder_carve(&o->builder, s, from);
    elastic_carve(&o->elastic, s, from);
    o->nodes = carve(from, QueueNode, s->n_slots);
    o->victims = carve(from, uint32_t, s->n_slots);
    o->failed = carve(from, uint32_t, s->n_slots);
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    Optimus o = {0};
    Carve   c = {.used = sizeof o};
    lay_out(&o, s, &c);
    return c.used;
}

// Where work is not told, as much is guessed to be left as was done.
static double left_s(const ClusterView *v, const ClusterTask *t) {
    TimeNs left = cluster_left(v, t);
    if (left < 0) left = cluster_held(v, t) + CLUSTER_SECOND;
    return (double)left / (double)CLUSTER_SECOND;
}

// The larger part of what there is that it takes, for as long as it will: what it costs to have it
// done.
static double needs(const ClusterView *v, const ClusterTask *t) {
    const ClusterSetup *s = v->setup;
    double              gpus = (double)cluster_gpu_milli(&t->job) / (1e3 * (double)s->gpus);
    double              cores = t->job.cores_milli / ((double)s->cores_milli + 1);
    double              memory = t->job.memory_mib / ((double)s->memory_mib + 1);
    double              most = cores > memory ? cores : memory;
    return left_s(v, t) * (gpus > most ? gpus : most);
}

static double cut(const void *of, const ClusterView *v, uint32_t slot, double from, double to) {
    (void)of;
    (void)v;
    (void)slot;
    return from > 0 ? to / from - 1 : 1e18;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    const OptimusSettings *cfg = settings;
    Optimus               *o = state;
    Carve                  c = {.base = state, .used = sizeof *o};
    lay_out(o, s, &c);
    plan_builder_init(&o->builder, s);
    o->builder.free.roomy = true;
    o->elastic.gain = cut;
    o->elastic.lean = true;
    o->waiting = (PriorityQueue){o->nodes, CLUSTER_NONE};
    o->period = cfg->period_s * CLUSTER_SECOND;
    o->stop = cfg->stop;
    o->due = INT64_MAX;
}

static void join(Optimus *o, const ClusterView *v, uint32_t slot) {
    const ClusterTask *t = &v->tasks[slot];
    priority_queue_push(&o->waiting, slot, (SortKey){needs(v, t), (double)t->job.submit}, t->entry);
}

static void look(Optimus *o, const ClusterView *v) {
    uint32_t from = v->n_waiting;
    while (from > 0 && v->tasks[v->waiting[from - 1]].entry > o->seen) from--;
    for (uint32_t i = from; i < v->n_waiting; i++) join(o, v, v->waiting[i]);
    if (from < v->n_waiting) o->seen = v->tasks[v->waiting[v->n_waiting - 1]].entry;
}

// Those that may be stopped, by what they need.
static void find_victims(Optimus *o, const ClusterView *v) {
    PriorityQueue l = {o->nodes, CLUSTER_NONE};
    o->n_victims = 0;
    for (uint32_t i = 0; i < v->n_running; i++) {
        const ClusterTask *t = &v->tasks[v->running[i]];
        if (t->job.gpus > 0)
            priority_queue_push(&l, v->running[i], (SortKey){-needs(v, t), 0}, t->entry);
    }
    for (uint32_t slot; (slot = priority_queue_pop(&l)) != CLUSTER_NONE;)
        o->victims[o->n_victims++] = slot;
}

// How many of the victims need so much more than a task that they stop for it.
static uint32_t larger(const Optimus *o, const ClusterView *v, const ClusterTask *t) {
    uint32_t low = 0, high = o->n_victims;
    double   mine = needs(v, t) * o->stop;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (needs(v, &v->tasks[o->victims[middle]]) > mine)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static ClusterJob lean(const Optimus *o, const ClusterSetup *s, const ClusterJob *j) {
    ClusterJob x = *j;
    double     cores = 0, mib = 0;
    elastic_base(&o->elastic, s, j, &cores, &mib);
    double all = j->gpus > 0 ? j->gpus : 1;
    x.cores_milli = plan_builder_amount(cores * all);
    x.memory_mib = plan_builder_amount(mib * all);
    return x;
}

static void start(Optimus *o, const ClusterView *v) {
    uint32_t in_a_row = 0;
    bool     listed = false;
    o->n_failed = 0;
    elastic_shrink(&o->elastic, &o->builder);
    for (uint32_t slot;
         in_a_row < TRIES && (slot = priority_queue_pop(&o->waiting)) != CLUSTER_NONE;) {
        const ClusterTask *t = &v->tasks[slot];
        ClusterJob         j = lean(o, v->setup, &t->job);
        bool               placed = plan_builder_place_as(&o->builder, slot, &j);
        if (!placed && t->job.gpus > 0) {
            if (!listed) find_victims(o, v);
            listed = true;
            placed = plan_builder_preempt(&o->builder, slot, &j, o->victims, larger(o, v, t));
        }
        if (!placed) o->failed[o->n_failed++] = slot;
        in_a_row = placed ? 0 : in_a_row + 1;
    }
    for (uint32_t i = 0; i < o->n_failed; i++) join(o, v, o->failed[i]);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Optimus *o = state;
    bool     round = v->now >= o->due || v->setup->round > 0;
    (void)max;
    if (round || o->due == INT64_MAX) o->due = (v->now / o->period + 1) * o->period;
    if (v->n_waiting == 0) o->due = INT64_MAX;
    plan_builder_begin(&o->builder, v);
    look(o, v);
    if (v->n_waiting > 0) start(o, v);
    elastic_run(&o->elastic, &o->builder);
    uint32_t n = plan_builder_write(&o->builder, out);
    if (o->due < INT64_MAX) out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = o->due};
    return n;
}

const ClusterPolicy cluster_policy_optimus = {
    .name = "optimus",
    .about = "each next unit of GPUs, cores or memory to whom it cuts the most remaining time",
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
