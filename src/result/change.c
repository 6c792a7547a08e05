#include "result/change.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

typedef struct Pair {
    const ComparisonCell  *cell;
    const ComparisonEntry *ours, *theirs;
} Pair;

static bool pair_in(const Comparison *c, uint32_t cell, const char *policy, MetricId id,
                    Pair *out) {
    const ComparisonCell *at = &c->cells[cell];
    *out = (Pair){.cell = at,
                  .ours = comparison_subject(c, at),
                  .theirs = policy != NULL ? comparison_find(at, policy)
                                           : comparison_baseline(c, at, id)};
    return out->ours != NULL && out->theirs != NULL && out->ours != out->theirs;
}

static Mean delta_of(const Comparison *c, const Pair *p, MetricId id) {
    if (metrics[metric_delta_of(id)].delta == METRIC_DIFFERENCE)
        return comparison_difference(c, p->ours, p->theirs, id);
    Mean r = comparison_ratio(c, p->ours, p->theirs, id);
    r.mean -= 1;
    return r;
}

static void add_gain(const ComparisonCell *cell, double ours, double theirs, Change *out) {
    if (!(theirs > 0) || ours / theirs - 1 <= out->gain) return;
    out->gain = ours / theirs - 1;
    out->gain_ours = ours;
    out->gain_theirs = theirs;
    out->gain_at = cell;
}

static void add_cell(const Comparison *c, const Pair *p, MetricId id, Change *out) {
    bool   lower = metrics[id].better == METRIC_LOWER;
    Mean   delta = delta_of(c, p, id);
    double ours = comparison_mean(c, p->cell, p->ours, id).mean;
    double theirs = comparison_mean(c, p->cell, p->theirs, id).mean;
    bool   above = delta.mean - delta.half > 0, below = delta.mean + delta.half < 0;
    out->ahead += lower ? below : above;
    out->behind += lower ? above : below;
    if (out->cells == 0 || (lower ? delta.mean < out->best.mean : delta.mean > out->best.mean)) {
        out->best = delta;
        out->best_at = p->cell;
    }
    if (out->cells == 0 || (lower ? delta.mean > out->worst.mean : delta.mean < out->worst.mean)) {
        out->worst = delta;
        out->worst_at = p->cell;
    }
    out->mean += delta.mean;
    out->ours += ours / c->n_cells;
    out->theirs += theirs / c->n_cells;
    if (!lower) add_gain(p->cell, ours, theirs, out);
    out->cells++;
}

static Mean by_seed(const Comparison *c, const char *policy, MetricId id) {
    double x[COMPARISON_SEEDS] = {0};
    Pair   p;
    CHECK(c->seeds <= COMPARISON_SEEDS);
    for (uint32_t i = 0; i < c->n_cells; i++) {
        if (!pair_in(c, i, policy, id, &p)) continue;
        for (uint32_t k = 0; k < c->seeds; k++) {
            size_t at = (size_t)k * METRICS + id;
            x[k] += (p.ours->values[at] - p.theirs->values[at]) / c->n_cells;
        }
    }
    return stats_mean(x, c->seeds);
}

bool change_against(const Comparison *c, const char *policy, MetricId id, Change *out) {
    Change x = {.gain = NAN, .gain_ours = NAN, .gain_theirs = NAN};
    Pair   p;
    for (uint32_t i = 0; i < c->n_cells; i++)
        if (pair_in(c, i, policy, id, &p)) add_cell(c, &p, id, &x);
    if (x.cells == 0) return false;
    x.mean /= x.cells;
    x.even = x.cells - x.ahead - x.behind;
    x.by_seed = by_seed(c, policy, id);
    *out = x;
    return true;
}
