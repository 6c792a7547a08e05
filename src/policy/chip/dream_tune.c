#include "policy/chip/dream_tune.h"

void dream_tune_init(DreamTune *d, double alpha, double beta, double window_ns, Rng rng) {
    *d = (DreamTune){.now = {alpha, beta}, .best = {alpha, beta}};
    d->best_cost = -1.0;
    d->window_ns = window_ns;
    d->rng = rng;
}

// Misses of all tenants, the recent ones weighing more, times energy against the mean kind's.
static double cost(const DreamTune *d, const ChipView *v) {
    double misses = 0.0;
    for (uint32_t i = 0; i < v->setup->n_tenants; i++)
        misses += 1.0 - (double)v->tenant_stats[i].hit_rate;
    return misses * (d->mean_pj > 0 ? d->spent_pj / d->mean_pj : 1.0);
}

static double near(double x, Rng *rng) {
    const double step = 1.5, least = 1e-4;
    return (x > least ? x : least) * (rng_below(rng, 2) == 0 ? step : 1.0 / step);
}

// What was found is worth less with time: traffic changes, and a lucky window must not rule for
// ever.
static void judge(DreamTune *d, double found) {
    const double fade = 1.05;
    if (d->best_cost < 0 || found <= d->best_cost) {
        d->best = d->now;
        d->best_cost = found;
    } else {
        d->best_cost *= fade;
    }
}

void dream_tune_look(DreamTune *d, const ChipView *v) {
    if (d->until == 0) d->until = v->now + (TimeNs)d->window_ns;
    if (v->now < d->until) return;
    judge(d, cost(d, v));
    d->now = d->best;
    double *moves = rng_below(&d->rng, 2) == 0 ? &d->now.alpha : &d->now.beta;
    *moves = near(*moves, &d->rng);
    d->until = v->now + (TimeNs)d->window_ns;
    d->spent_pj = d->mean_pj = 0.0;
}
