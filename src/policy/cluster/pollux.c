// pollux: GPUs to jobs for a large power mean of their speedups
//
// 1. In rounds, and with `events` when jobs arrive or end, every job has a speedup for each number
//    of GPUs it may run on: its rate there, which is its goodput where the class's scaling includes
//    the efficiency of larger batches, over its rate on an equal share of the cluster. A job
//    without GPUs has the speedup `idle`.
// 2. A running job that would change loses the part 1 - (T - R d) / (T + d) of its speedup: T is
//    its age, R the number of times it was restarted, d its restart time.
// 3. GPUs are divided so that the power mean of all speedups, with the exponent `p`, is large;
//    below 1 it prefers jobs with few. A job that was given more than `decay_gpu_h` GPU hours
//    counts less, by that ratio to the power of `decay`, as in the paper's first version.
// 4. The paper searches by a genetic algorithm; here GpuSplit finds the largest sum where jobs and
//    GPUs are few, else a near one in steps. Gangs are placed on as few servers as possible.
//
// Jobs that are not elastic get their submitted number or none. Cores and memory are the default.
#include <math.h>

#include "contract/rate.h"
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/gpu_split.h"
#include "policy/policies.h"

#define SETTINGS(X)                                                                                \
    X(period_s, int, 60, 1, 86400, "seconds between rounds")                                       \
    X(events, bool, true, 0, 1, "also divides when jobs arrive or end")                            \
    X(p, double, 0.75, -10.0, 1.0, "exponent of the power mean")                                   \
    X(idle, double, 0.12, 1e-3, 0.9, "speedup of a job without GPUs")                              \
    X(decay, double, 0.2, 0.0, 4.0, "weight of a job falls with its GPU time to this power")       \
    X(decay_gpu_h, double, 4.0, 1e-3, 1e6, "GPU hours up to which a job's weight is 1")            \
    X(restart_weight, double, 1.1, 0.0, 100.0, "weight of the restart of a job that changes")

typedef struct PolluxSettings {
    SETTINGS(SETTING_FIELD)
} PolluxSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(PolluxSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Pollux {
    PlanBuilder           builder;
    GpuSplit              split;
    const PolluxSettings *cfg;
    TimeNs                period, due;
    double                fair;  // GPUs of an equal share
} Pollux;

static void lay_out(Pollux *x, const ClusterSetup *s, Carve *from) {
    plan_builder_carve(&x->builder, s, from);
    gpu_split_carve(&x->split, s, from);
}

CLUSTER_POLICY_STATE(Pollux)

static double power_mean_term(double speedup, double p) {
    return fabs(p) < 1e-9 ? log(speedup) : pow(speedup, p) / p;
}

// Rate on the equal share, within the job's bounds.
static double fair_rate(const Pollux *x, const ClusterSetup *s, const ClusterJob *j) {
    double least = j->gpus_max > 0 ? j->gpus_min : j->gpus;
    double most = j->gpus_max > 0 ? j->gpus_max : j->gpus;
    double gpus = fmin(fmax(floor(x->fair), least), most);
    return rate_scaling(s, j, (uint32_t)gpus);
}

static double kept_by_change(const Pollux *x, const ClusterView *v, const ClusterTask *t) {
    double delay = (double)cluster_restart(v->setup, &t->job) * x->cfg->restart_weight;
    double age = (double)(v->now - t->job.submit);
    double restarts = (double)t->preemptions + t->rescales;
    return fmax(0, (age - restarts * delay) / (age + delay));
}

static double weight_of(const Pollux *x, const ClusterView *v, const ClusterTask *t) {
    double hours = cluster_attained(v, t) / 3600;
    return hours <= x->cfg->decay_gpu_h ? 1 : pow(x->cfg->decay_gpu_h / hours, x->cfg->decay);
}

static double value(const void *self, const ClusterView *v, uint32_t slot, uint32_t gpus) {
    const Pollux      *x = self;
    const ClusterTask *t = &v->tasks[slot];
    double speedup = rate_scaling(v->setup, &t->job, gpus) / fair_rate(x, v->setup, &t->job);
    bool   changes =
        t->state == CLUSTER_RUNNING && gpus != cluster_slices_gpus(t->slices, t->n_slices);
    if (changes) speedup *= kept_by_change(x, v, t);
    speedup = fmax(speedup, x->cfg->idle);
    double gain = power_mean_term(speedup, x->cfg->p) - power_mean_term(x->cfg->idle, x->cfg->p);
    return weight_of(x, v, t) * gain;
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Pollux *x = state_open(state, s);
    x->cfg = settings;
    x->period = x->cfg->period_s * CLUSTER_SECOND;
    x->split.value = value;
    x->split.self = x;
    x->split.stops = true;
}

// Jobs without GPUs start as they come.
static void start_without_gpus(Pollux *x, const ClusterView *v) {
    for (uint32_t i = 0; v->setup->no_gpus && i < v->n_waiting; i++)
        if (v->tasks[v->waiting[i]].job.gpus == 0)
            (void)plan_builder_place(&x->builder, v->waiting[i]);
}

static void divide(Pollux *x, const ClusterView *v) {
    uint64_t gpus = x->builder.free.n_free;
    x->split.n = 0;
    x->fair = (double)v->setup->gpus / (v->n_running + v->n_waiting);
    for (uint32_t i = 0; i < v->n_running; i++)
        if (v->tasks[v->running[i]].job.gpus > 0)
            gpus += gpu_split_add(&x->split, v, v->running[i]);
    for (uint32_t i = 0; i < v->n_waiting; i++)
        if (v->tasks[v->waiting[i]].job.gpus > 0)
            gpus += gpu_split_add(&x->split, v, v->waiting[i]);
    gpu_split_run(&x->split, gpus);
    gpu_split_apply(&x->split, &x->builder);
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Pollux  *x = state;
    uint32_t n = 0;
    (void)max;
    bool event = x->cfg->events && (v->reason & (CLUSTER_JOB_ARRIVED | CLUSTER_JOB_ENDED)) != 0;
    if (v->now >= x->due || event || v->setup->round > 0) {
        plan_builder_begin(&x->builder, v);
        start_without_gpus(x, v);
        divide(x, v);
        n = plan_builder_write(&x->builder, out);
        x->due = period_after(v->now, x->period);
    }
    out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = x->due};
    return n;
}

const ClusterPolicy cluster_policy_pollux = {
    .name = "pollux",
    .about = "GPUs to elastic jobs for the largest power mean of speedups",
    .paper = "Pollux (OSDI 2021)",
    .knows = CLUSTER_BLIND,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(PolluxSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
