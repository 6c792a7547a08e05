// Rates: the true ones from the truth, those that policies see from beliefs and measurements, and
// the guard that corrects beliefs.
#include <math.h>

#include "base/err.h"
#include "cluster/sim/cluster_sim_int.h"
#include "contract/gang_demand.h"
#include "contract/rate.h"

typedef struct RateSource {  // what a rate is computed from
    const ClusterSim   *sim;
    const ClusterSetup *setup;
    bool                believed;
} RateSource;

static uint32_t class_of(const RateSource *x, uint32_t slot) {
    return x->believed ? x->sim->tasks[slot].job.class : x->sim->states[slot].class;
}

static bool has_gpu(const ClusterTask *t, uint32_t server, uint64_t gpu) {
    for (uint32_t k = 0; k < t->n_slices; k++)
        if (t->slices[k].server == server) return (t->slices[k].mask & gpu) != 0;
    return false;
}

// profile_share for any number of co-runners; those without a class do no harm. Jobs with a GPU
// fraction were checked to fit into the GPU's memory; jobs that were wrongly believed to fit run in
// turns.
static double corun_rate(const RateSource *x, uint32_t slot, uint32_t server, uint64_t gpu) {
    const ClusterSim  *w = x->sim;
    const ServerState *v = &w->servers[server];
    double             speed = 1, n = 0;
    for (uint32_t i = 0; i < v->n_residents; i++) {
        uint32_t other = v->residents[i], class = class_of(x, other);
        if (other == slot || class == CLUSTER_NONE || !has_gpu(&w->tasks[other], server, gpu))
            continue;
        speed *= profile_pair(x->setup->profiles, class_of(x, slot), class);
        n++;
    }
    CHECK(speed > 0 || w->tasks[slot].job.gpu_milli < CLUSTER_WHOLE_GPU || w->run->beliefs != NULL);
    return (n < 2 && speed > 0) || speed > 1 / (1 + n) ? speed : 1 / (1 + n);
}

static double worst_corun_rate(const RateSource *x, uint32_t slot) {
    const ClusterTask *t = &x->sim->tasks[slot];
    double             least = 1;
    for (uint32_t i = 0; i < t->n_slices; i++) {
        if (t->slices[i].gpu_milli == CLUSTER_WHOLE_GPU) continue;
        for (uint64_t m = t->slices[i].mask; m != 0; m &= m - 1) {
            double rate = corun_rate(x, slot, t->slices[i].server, m & -m);
            if (rate < least) least = rate;
        }
    }
    return least;
}

// Synergy's simulator knows two rates only: the best demand's and the share's.
static double best_or_share(const RateSource *x, const ClusterTask *t, const ClusterJob *j) {
    GangDemand best;
    double     speed = gang_demand_best(x->setup, j, &best);
    for (uint32_t i = 0; i < t->n_slices; i++) {
        const ClusterSlice *s = &t->slices[i];
        GangDemand          d = gang_demand_part(&best, s->gpus);
        if (s->cores_milli != d.cores_milli || s->memory_mib != d.memory_mib) return 1;
    }
    return speed;
}

static double rate_from(const RateSource *x, uint32_t slot) {
    const ClusterTask *t = &x->sim->tasks[slot];
    ClusterJob         j = t->job;
    j.class = class_of(x, slot);
    bool classed = x->setup->profiles != NULL && j.class != CLUSTER_NONE && j.gpus > 0;
    if (classed && x->setup->in_rounds) return best_or_share(x, t, &j);
    double alone = rate_alone(x->setup, &j, t->slices, t->n_slices);
    return classed ? alone * worst_corun_rate(x, slot) : alone;
}

double cluster_sim_rate(const ClusterSim *w, uint32_t slot) {
    return rate_from(&(RateSource){w, &w->truth, false}, slot);
}

double cluster_sim_believed_rate(const ClusterSim *w, uint32_t slot) {
    return rate_from(&(RateSource){w, w->setup, true}, slot);
}

void cluster_sim_rate_changed(ClusterSim *w, uint32_t slot) {
    if (w->states[slot].changed) return;
    w->states[slot].changed = true;
    w->changed[w->n_changed++] = slot;
}

void cluster_sim_schedule_end(ClusterSim *w, uint32_t slot) {
    const TaskState *l = &w->states[slot];
    if (w->setup->in_rounds) return;
    double work = (double)(l->left - l->owed);
    TimeNs ns = l->left;
    if (l->rate != 1.0) {
        if (!(l->rate > 0) || work / l->rate > (double)JOB_TIME_MAX) {
            heap_remove(&w->ends, slot);
            return;
        }
        ns = l->owed + (TimeNs)ceil(work / l->rate);
    }
    heap_set(&w->ends, w->now + ns + w->run->params.linger, 0, slot);
}

// Policies see the believed rate of a changed allocation until it is measured, whether or not the
// true rate changes: otherwise the time of the last change would tell.
static void believe(ClusterSim *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    cluster_sim_book_view(w, slot);
    t->rate = cluster_sim_believed_rate(w, slot);
    t->measured = 0;
    w->states[slot].strikes = 0;
    heap_set(&w->measures, w->now + w->states[slot].owed + w->run->info.delay, 0, slot);
}

void cluster_sim_rates(ClusterSim *w) {
    bool exact = w->run->info.rates == RATES_EXACT;
    for (uint32_t i = 0; i < w->n_changed; i++) {
        uint32_t     slot = w->changed[i];
        ClusterTask *t = &w->tasks[slot];
        TaskState   *l = &w->states[slot];
        l->changed = false;
        if (t->state != CLUSTER_RUNNING) continue;
        double rate = cluster_sim_rate(w, slot);
        bool   planned = w->ends.position[slot] != 0;
        if (!exact) believe(w, slot);
        if (rate == l->rate && planned) continue;
        cluster_sim_book(w, slot);
        l->rate = rate;
        if (exact) t->rate = rate;
        cluster_sim_schedule_end(w, slot);
    }
    w->n_changed = 0;
}

// A rate that stays too low returns the job to the class whose only level is the default demand.
static bool guard(ClusterSim *w, uint32_t slot) {
    const Information *info = &w->run->info;
    ClusterTask       *t = &w->tasks[slot];
    TaskState         *l = &w->states[slot];
    uint32_t fallback = w->run->beliefs != NULL ? w->run->beliefs->fallback : CLUSTER_NONE;
    bool     classed = t->job.class != CLUSTER_NONE && t->job.class != fallback;
    if (info->guard <= 0 || fallback == CLUSTER_NONE || !classed) return false;
    if (!(t->measured < info->guard * cluster_sim_believed_rate(w, slot))) {
        l->strikes = 0;
        return false;
    }
    if (++l->strikes < info->guard_times) {
        heap_set(&w->measures, w->now + (info->delay > 0 ? info->delay : 1), 0, slot);
        return false;
    }
    t->job.class = fallback;
    l->guarded = true;
    return true;
}

static void measure(ClusterSim *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    TaskState   *l = &w->states[slot];
    Rng          r = rng_fork(rng_fork(w->noises, l->job), l->measurements++);
    cluster_sim_book_view(w, slot);
    t->measured = l->rate * exp(w->run->info.noise * rng_normal(&r));
    t->measured_at = w->now;
    t->rate = t->measured;
}

bool cluster_sim_measure(ClusterSim *w) {
    bool corrected = false;
    while (heap_first_key(&w->measures) <= w->now) {
        uint32_t slot = heap_pop(&w->measures).id;
        measure(w, slot);
        bool learned = cluster_sim_estimate_rate(w, slot);
        corrected = guard(w, slot) || learned || corrected;
    }
    return corrected;
}
