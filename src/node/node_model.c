#include "node/node_model.h"

#include <math.h>
#include <string.h>

#include "base/err.h"
#include "node/node_model_int.h"

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

static void scale_times(float *times, const NodeModel *m, const double *factors) {
    size_t rows = (size_t)m->n_layers * NODE_VERSIONS;
    for (size_t row = 0; row < rows; row++)
        for (uint32_t k = 0; k < m->n_counts; k++)
            for (uint32_t level = 0; level < NODE_LEVELS; level++)
                times[(row * m->n_counts + k) * NODE_LEVELS + level] *= (float)factors[k];
}

void model_scale(NodeModel *m, const double *factors) {
    ModelTables t = {.model = m, .layers = (NodeLayer *)(uintptr_t)m->layers};
    scale_times((float *)(uintptr_t)m->times, m, factors);
    for (uint32_t level = 0; level < NODE_LEVELS; level++)
        for (uint32_t k = 0; k < m->n_counts; k++)
            sum_up(&t, k, level, (float *)(uintptr_t)m->rest_best, (float *)(uintptr_t)m->rest_solo,
                   (uint8_t *)(uintptr_t)node_best_versions(m, k, level));
}

// Tolerated loss against all candidates; slow-down and traffic ratio that justify a low-traffic
// version.
static const double LOSS = 0.05, SLACK = 1.25, LESS = 0.85;

static float objective_ns(const ModelChoice *c, uint32_t i, uint32_t o) {
    return c->times[(size_t)i * c->occasions + o];
}

static void find_best(const ModelChoice *c, float *best) {
    for (uint32_t o = 0; o < c->occasions; o++) {
        best[o] = INFINITY;
        for (uint32_t i = 0; i < c->n; i++) best[o] = fminf(best[o], objective_ns(c, i, o));
    }
}

// Mean ratio to the best time over conditions without interference.
static double lag(const ModelChoice *c, const float *best, uint32_t i) {
    double sum = 0, n = 0;
    for (uint32_t o = 0; o < c->occasions; o++)
        if (c->alone[o]) sum += (double)(objective_ns(c, i, o) / best[o]), n++;
    return sum / n;
}

static uint32_t fastest_alone(const ModelChoice *c, const float *best) {
    uint32_t first = 0;
    double   least = INFINITY;
    for (uint32_t i = 0; i < c->n; i++) {
        double x = lag(c, best, i);
        if (x < least * 0.999 || (x < least * 1.001 && c->moved[i] < c->moved[first]))
            least = x, first = i;
    }
    return first;
}

// Worst loss under any condition if candidate i is added.
static double loss_with(const ModelChoice *c, const float *best, const uint32_t *kept, uint32_t n,
                        uint32_t i) {
    double worst = 0;
    for (uint32_t o = 0; o < c->occasions; o++) {
        float t = objective_ns(c, i, o);
        for (uint32_t k = 0; k < n; k++) t = fminf(t, objective_ns(c, kept[k], o));
        worst = fmax(worst, (double)(t / best[o]) - 1);
    }
    return worst;
}

static bool is_kept(const uint32_t *kept, uint32_t n, uint32_t i) {
    for (uint32_t k = 0; k < n; k++)
        if (kept[k] == i) return true;
    return false;
}

// A version with much less memory traffic at little cost in time.
static uint32_t keep_modest(const ModelChoice *c, const float *best, uint32_t *kept, uint32_t n) {
    float    least = INFINITY;
    uint32_t modest = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (lag(c, best, i) <= SLACK && c->moved[i] < least) least = c->moved[i], modest = i;
    if (!(least < INFINITY) || is_kept(kept, n, modest)) return n;
    for (uint32_t k = 0; k < n; k++)
        if ((double)least > LESS * (double)c->moved[kept[k]]) return n;
    kept[n] = modest;
    return n + 1;
}

// Adds the candidates that lower the worst loss most, up to `most`.
static uint32_t keep_needed(const ModelChoice *c, const float *best, uint32_t *kept, uint32_t n,
                            uint32_t most) {
    double loss = loss_with(c, best, kept, n, kept[0]);
    while (n < most && loss > LOSS) {
        uint32_t next = kept[0];
        double   least = loss;
        for (uint32_t i = 0; i < c->n; i++) {
            double x = loss_with(c, best, kept, n, i);
            if (x < least) least = x, next = i;
        }
        if (next == kept[0]) break;
        kept[n++] = next;
        loss = least;
    }
    return n;
}

uint32_t model_choose(const ModelChoice *c, float *best, uint32_t kept[NODE_VERSIONS]) {
    find_best(c, best);
    kept[0] = fastest_alone(c, best);
    uint32_t n = keep_needed(c, best, kept, 1, NODE_VERSIONS - 1);
    n = keep_modest(c, best, kept, n);
    return keep_needed(c, best, kept, n, NODE_VERSIONS);
}
