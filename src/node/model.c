#include "node/model.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "node/model_int.h"

static size_t at(const ModelTables *t, uint32_t l, uint32_t v) {
    CHECK(l < t->model->n_layers && v < NODE_VERSIONS);
    return (size_t)l * NODE_VERSIONS + v;
}

float *model_times(ModelTables *t, uint32_t l, uint32_t v, uint32_t k) {
    return t->times + (at(t, l, v) * t->model->n_counts + k) * NODE_LEVELS;
}

float *model_bytes(ModelTables *t, uint32_t l, uint32_t v, uint32_t s) {
    return t->bytes + (at(t, l, v) * t->demand->n_slices + s) * DEMAND_SHARES;
}

Err model_begin(ModelTables *t, NodeModel *m, NodeDemand *d, Arena *a) {
    size_t all = (size_t)m->n_layers * NODE_VERSIONS, n = m->n_counts;
    *t = (ModelTables){.model = m, .demand = d};
    t->layers = arena_try_new(a, NodeLayer, m->n_layers);
    t->times = arena_try_new(a, float, all *n *NODE_LEVELS);
    t->core_ns = arena_try_new(a, float, all *n);
    t->bytes = arena_try_new(a, float, all * d->n_slices * DEMAND_SHARES);
    t->hot_bytes = arena_try_new(a, float, all);
    t->read_bytes = arena_try_new(a, float, m->n_layers);
    if (t->layers == NULL || t->times == NULL || t->core_ns == NULL || t->bytes == NULL ||
        t->hot_bytes == NULL || t->read_bytes == NULL)
        return err_set(ERR_LIMIT, "no memory for the times of %u layers", m->n_layers);
    d->n_layers = m->n_layers;
    d->n_counts = m->n_counts;
    return ERR_OK;
}

static void copy(float *table, size_t each, uint32_t from, uint32_t to) {
    memcpy(table + each * to, table + each * from, each * sizeof *table);
}

void model_copy_layer(ModelTables *t, uint32_t from, uint32_t to) {
    const char *name = t->layers[to].name;
    size_t      n = t->model->n_counts;
    t->layers[to] = t->layers[from];
    t->layers[to].name = name;
    copy(t->times, NODE_VERSIONS * n * NODE_LEVELS, from, to);
    copy(t->core_ns, NODE_VERSIONS * n, from, to);
    copy(t->bytes, (size_t)NODE_VERSIONS * t->demand->n_slices * DEMAND_SHARES, from, to);
    copy(t->hot_bytes, NODE_VERSIONS, from, to);
}

static uint8_t fastest(const ModelTables *t, uint32_t l, uint32_t k, uint32_t level) {
    uint32_t best = 0;
    for (uint32_t v = 1; v < t->layers[l].n_versions; v++)
        if (node_time(t->model, l, v, k, level) < node_time(t->model, l, best, k, level)) best = v;
    return (uint8_t)best;
}

static void sum_up(const ModelTables *t, uint32_t k, uint32_t level, float *best, float *solo,
                   uint8_t *picks) {
    const NodeModel *m = t->model;
    double           sum_best = 0, sum_solo = 0;
    for (uint32_t l = m->n_layers; l-- > 0;) {
        picks[l] = fastest(t, l, k, level);
        sum_best += (double)node_time(m, l, picks[l], k, level);
        sum_solo += (double)node_time(m, l, 0, k, level);
        size_t i = (l * (size_t)m->n_counts + k) * NODE_LEVELS + level;
        best[i] = (float)sum_best;
        solo[i] = (float)sum_solo;
    }
}

Err model_end(ModelTables *t, Arena *a) {
    NodeModel  *m = t->model;
    NodeDemand *d = arena_try_new(a, NodeDemand, 1);
    // One row beyond the last layer, where nothing is left.
    size_t   n = ((size_t)m->n_layers + 1) * m->n_counts * NODE_LEVELS;
    float   *best = arena_try_new(a, float, n), *solo = arena_try_new(a, float, n);
    uint8_t *picks = arena_try_new(a, uint8_t, (size_t)m->n_layers * m->n_counts * NODE_LEVELS);
    if (d == NULL || best == NULL || solo == NULL || picks == NULL)
        return err_set(ERR_LIMIT, "no memory for the times of %u layers", m->n_layers);
    m->layers = t->layers;
    m->times = t->times;
    for (uint32_t level = 0; level < NODE_LEVELS; level++)
        for (uint32_t k = 0; k < m->n_counts; k++)
            sum_up(t, k, level, best, solo,
                   picks + (level * m->n_counts + k) * (size_t)m->n_layers);
    m->rest_best = best;
    m->rest_solo = solo;
    m->picks = picks;
    *d = *t->demand;
    d->core_ns = t->core_ns;
    d->bytes = t->bytes;
    d->hot_bytes = t->hot_bytes;
    d->read_bytes = t->read_bytes;
    m->demand = d;
    return ERR_OK;
}
