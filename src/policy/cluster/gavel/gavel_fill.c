#include "policy/cluster/gavel/gavel_fill.h"

#include <math.h>

#include "learn/activation.h"

enum { STEPS = 48 };

static const float STEEPNESS = 4;  // a used-up type costs e^4 times as much as an idle one

static double share_of(const GavelFill *f, const GavelJob *j) {
    double all = 0;
    for (uint32_t t = 0; t < f->n_types; t++) all += j->share[t];
    return all;
}

static double price(const GavelFill *f, uint32_t t) {
    return repro_exp(STEEPNESS * (float)(f->used[t] / f->gpus[t]));
}

// The type with room where a unit of throughput costs least; n_types: there is none.
static uint32_t cheapest(const GavelFill *f, const GavelJob *j) {
    uint32_t best = f->n_types;
    double   least = 0;
    for (uint32_t t = 0; t < f->n_types; t++) {
        if (!(j->speed[t] > 0) || f->used[t] + 1e-9 >= f->gpus[t]) continue;
        double cost = price(f, t) / j->speed[t];
        if (best < f->n_types && cost >= least) continue;
        best = t;
        least = cost;
    }
    return best;
}

// Raises the job by so much throughput. false: it cannot rise further.
static bool raise(GavelFill *f, GavelJob *j, double throughput) {
    uint32_t t = cheapest(f, j);
    double   free_time = 1 - share_of(f, j);
    if (t == f->n_types || free_time < 1e-9) return false;
    double time = fmin(throughput / j->speed[t], free_time);
    time = fmin(time, (f->gpus[t] - f->used[t]) / j->gpus);
    j->share[t] += time;
    f->used[t] += time * j->gpus;
    return true;
}

static void reset(GavelFill *f, GavelJob *jobs, uint32_t n) {
    for (uint32_t t = 0; t < f->n_types; t++) f->used[t] = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < f->n_types; t++) jobs[i].share[t] = 0;
}

static double fastest(const GavelFill *f, const GavelJob *j) {
    double most = 0;
    for (uint32_t t = 0; t < f->n_types; t++) most = fmax(most, j->speed[t]);
    return most;
}

// A step of the level: small against the level at which everything would be used up, and never so
// small that a job needs more than STEPS of them to use all of its time.
static double step_of(const GavelFill *f, const GavelJob *jobs, uint32_t n) {
    double need = 0, all = 0, quickest = 0;
    for (uint32_t t = 0; t < f->n_types; t++) all += f->gpus[t];
    for (uint32_t i = 0; i < n; i++) {
        double most = fastest(f, &jobs[i]);
        if (!(most > 0) || !(jobs[i].claim > 0)) continue;
        need += jobs[i].gpus * jobs[i].claim / most;
        quickest = fmax(quickest, jobs[i].claim / most);
    }
    double by_room = need > 0 ? all / need : 0, by_time = quickest > 0 ? 1 / quickest : 0;
    return fmin(by_room, by_time) / STEPS;
}

void gavel_fill(GavelFill *f, GavelJob *jobs, uint32_t n) {
    double step = step_of(f, jobs, n);
    reset(f, jobs, n);
    if (!(step > 0)) return;
    bool any = true;
    for (uint32_t k = 0; any && k < STEPS * STEPS; k++) {
        any = false;
        if (k % STEPS == STEPS - 1) step *= 2;  // only the last jobs still rise
        for (uint32_t i = 0; i < n; i++)
            if (jobs[i].claim > 0) any = raise(f, &jobs[i], step * jobs[i].claim) || any;
    }
}

void gavel_fill_in_order(GavelFill *f, GavelJob *jobs, uint32_t n) {
    reset(f, jobs, n);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < f->n_types; t++)
            if (!raise(f, &jobs[i], INFINITY)) break;
}
