#include "result/comparison.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

static const Mean unknown = {.mean = NAN, .sd = NAN, .half = NAN};

static double value_of(const ComparisonEntry *e, uint32_t seed, MetricId id) {
    return e->values[(size_t)seed * METRICS + id];
}

static Mean mean_of(const Comparison *c, const ComparisonEntry *e, MetricId id) {
    double x[COMPARISON_SEEDS];
    CHECK(c->seeds <= COMPARISON_SEEDS);
    for (uint32_t i = 0; i < c->seeds; i++) x[i] = value_of(e, i, id);
    return stats_mean(x, c->seeds);
}

Mean comparison_difference(const Comparison *c, const ComparisonEntry *e,
                           const ComparisonEntry *than, MetricId id) {
    double x[COMPARISON_SEEDS];
    CHECK(c->seeds <= COMPARISON_SEEDS);
    for (uint32_t i = 0; i < c->seeds; i++) x[i] = value_of(e, i, id) - value_of(than, i, id);
    return stats_mean(x, c->seeds);
}

Mean comparison_ratio(const Comparison *c, const ComparisonEntry *e, const ComparisonEntry *than,
                      MetricId id) {
    double x[COMPARISON_SEEDS];
    CHECK(c->seeds <= COMPARISON_SEEDS);
    for (uint32_t i = 0; i < c->seeds; i++) {
        double of = value_of(than, i, id);
        x[i] = of > 0 ? value_of(e, i, id) / of : NAN;
    }
    return stats_mean(x, c->seeds);
}

static const ComparisonEntry *other_of(const Comparison *c, const ComparisonCell *cell,
                                       const Metric *m) {
    switch (m->versus) {
    case METRIC_SUBJECT: return comparison_subject(c, cell);
    case METRIC_BASELINE: return comparison_baseline(c, cell, m->of);
    case METRIC_BOUND: return comparison_bound(c, cell, m->of);
    }
    return NULL;
}

Mean comparison_mean(const Comparison *c, const ComparisonCell *cell, const ComparisonEntry *e,
                     MetricId id) {
    const Metric *m = &metrics[id];
    Mean          x = unknown;
    if (m->delta == METRIC_VALUE) return mean_of(c, e, id);
    const ComparisonEntry *other = other_of(c, cell, m);
    if (other == NULL) return x;
    switch (m->delta) {
    case METRIC_VALUE: break;
    case METRIC_DIFFERENCE: return comparison_difference(c, e, other, m->of);
    case METRIC_RATIO: return comparison_ratio(c, e, other, m->of);
    case METRIC_SHORTFALL:
        x = comparison_difference(c, e, other, m->of);
        x.mean = -x.mean;
        break;
    case METRIC_CHANGE: x.mean = mean_of(c, e, m->of).mean / mean_of(c, other, m->of).mean - 1;
    }
    return x;
}

const ComparisonEntry *comparison_find(const ComparisonCell *cell, const char *policy) {
    for (uint32_t i = 0; i < cell->n_entries; i++)
        if (strcmp(cell->entries[i].policy, policy) == 0)
            return cell->entries[i].missing == NULL ? &cell->entries[i] : NULL;
    return NULL;
}

const ComparisonEntry *comparison_subject(const Comparison *c, const ComparisonCell *cell) {
    return comparison_find(cell, c->subject);
}

static bool is_part(const Comparison *c, const ComparisonEntry *e) {
    return e->part_of != NULL && strcmp(e->part_of, c->subject) == 0;
}

static bool is_better(const Comparison *c, const ComparisonEntry *e, const ComparisonEntry *than,
                      MetricId id) {
    double a = mean_of(c, e, id).mean, b = mean_of(c, than, id).mean;
    return metrics[id].better == METRIC_LOWER ? a < b : a > b;
}

static const ComparisonEntry *best(const Comparison *c, const ComparisonCell *cell, MetricId id,
                                   bool knows_more) {
    const ComparisonEntry *found = NULL;
    for (uint32_t i = 0; i < cell->n_entries; i++) {
        const ComparisonEntry *e = &cell->entries[i];
        if (e->missing != NULL || (e->rank > c->fair_rank) != knows_more || is_part(c, e) ||
            strcmp(e->policy, c->subject) == 0)
            continue;
        if (found == NULL || is_better(c, e, found, id)) found = e;
    }
    return found;
}

const ComparisonEntry *comparison_baseline(const Comparison *c, const ComparisonCell *cell,
                                           MetricId id) {
    return best(c, cell, id, false);
}

const ComparisonEntry *comparison_bound(const Comparison *c, const ComparisonCell *cell,
                                        MetricId id) {
    return best(c, cell, id, true);
}

const ComparisonEntry *comparison_part(const Comparison *c, const ComparisonCell *cell) {
    for (uint32_t i = 0; i < cell->n_entries; i++)
        if (is_part(c, &cell->entries[i]) && cell->entries[i].missing == NULL)
            return &cell->entries[i];
    return NULL;
}

double comparison_field(const ComparisonCell *cell, const char *key) {
    for (uint32_t i = 0; i < cell->n_fields; i++)
        if (strcmp(cell->fields[i].key, key) == 0 && cell->fields[i].kind != FIELD_TEXT)
            return cell->fields[i].number;
    return NAN;
}

static bool is_within(const ComparisonCell *cell, const CellFilter *w) {
    return (w->group == NULL || strcmp(w->group, cell->group) == 0) &&
           (w->key == NULL || comparison_field(cell, w->key) == w->value);
}

Mean comparison_over(const Comparison *c, const CellFilter *where, const char *policy,
                     MetricId id) {
    double   x[COMPARISON_SEEDS] = {0};
    uint32_t n = 0;
    CHECK(c->seeds <= COMPARISON_SEEDS);
    for (uint32_t i = 0; i < c->n_cells; i++) {
        const ComparisonEntry *e = comparison_find(&c->cells[i], policy);
        if (e == NULL || !is_within(&c->cells[i], where)) continue;
        for (uint32_t k = 0; k < c->seeds; k++) x[k] += value_of(e, k, id);
        n++;
    }
    for (uint32_t k = 0; k < c->seeds; k++) x[k] /= n > 0 ? n : 1;
    return stats_mean(x, n > 0 ? c->seeds : 0);
}
