// How blocks are formed
//
// 1. share[l] is what layer l takes of the model's time on `flat` cores, the least count that keeps
//    the whole model within a * QoS. A layer, or a block, may take its share of a * QoS.
// 2. need[l] is the least count that lets layer l do so.
// 3. Going through the layers, a block ends before one that wants clearly more or fewer cores than
//    the model (a pivot) or than the block so far (it differs), where `clearly` is theta: near 0
//    every layer is its own block, at infinity the model is one. Blocks below min_ns are not worth
//    their dispatch and go on; no block grows beyond max_ns, since nobody else gets its cores
//    before.
// 4. Counts ask for the least cores of the whole block, so a hungry layer borrows time from a
// frugal
//    one beside it.
#include "policy/node/cut.h"

#include <math.h>

static float layer_time(const Cut *c, bool best, uint32_t l, uint32_t k, uint32_t level) {
    uint32_t v = best ? node_pick(c->model, k, level)[l] : 0;
    return node_time(c->model, l, v, k, level);
}

// The least k whose time fits; the fastest when none does.
static uint32_t least(const float *times, uint32_t n, double fits) {
    uint32_t fastest = 0;
    for (uint32_t k = 0; k < n; k++) {
        if ((double)times[k] <= fits) return k;
        if (times[k] < times[fastest]) fastest = k;
    }
    return fastest;
}

void cut_carve(Cut *c, const CutRule *rule, const NodeTenant *t, Carve *from) {
    uint32_t n = t->model->n_layers, levels = rule->blind ? 1 : NODE_LEVELS;
    *c = (Cut){.model = t->model, .n_levels = levels};
    c->share = carve(from, float, (size_t)levels *(n + 1));
    c->need = carve(from, uint16_t, (size_t)levels * n);
    c->end = carve(from, uint16_t, (size_t)CUT_THETAS * levels * n);
    c->cores = carve(from, uint16_t, (size_t)CUT_THETAS * levels * n);
}

// Steps 1 and 2; returns the k of flat.
static uint32_t size_layers(Cut *c, const CutRule *rule, double planned, uint32_t level) {
    const NodeModel *m = c->model;
    float            sums[NODE_COUNTS] = {0};
    for (uint32_t l = 0; l < m->n_layers; l++)
        for (uint32_t k = 0; k < m->n_counts; k++)
            sums[k] += layer_time(c, rule->best, l, k, level);
    uint32_t flat = least(sums, m->n_counts, planned);
    float   *share = c->share + level * (m->n_layers + 1);
    for (uint32_t l = m->n_layers; l-- > 0;)
        share[l] = share[l + 1] + layer_time(c, rule->best, l, flat, level) / sums[flat];
    for (uint32_t l = 0; l < m->n_layers; l++) {
        float times[NODE_COUNTS];
        for (uint32_t k = 0; k < m->n_counts; k++)
            times[k] = layer_time(c, rule->best, l, k, level);
        uint32_t k = least(times, m->n_counts, planned * (double)(share[l] - share[l + 1]));
        c->need[level * m->n_layers + l] = m->counts[k];
    }
    c->flat[level] = m->counts[flat];
    return flat;
}

typedef struct Growing {  // a block
    uint32_t first;
    double   ns, needs;  // its layers' times and needs, summed
} Growing;

static bool closes(const Cut *c, const CutRule *rule, const Growing *g, uint32_t l, double theta,
                   uint32_t level, double ns) {
    if (rule->fixed > 0) return l - g->first >= rule->fixed;
    double need = c->need[level * c->model->n_layers + l], flat = c->flat[level];
    bool   pivot = need > (1.0 + theta) * flat || need < flat / (1.0 + theta);
    bool   differs = fabs(need - g->needs / (l - g->first)) > theta * flat;
    return ((pivot || differs) && g->ns >= rule->min_ns) || g->ns + ns > rule->max_ns;
}

// Step 4, for a request that enters a block at any of its layers.
static void close_block(const Cut *c, const CutRule *rule, double planned, uint32_t list,
                        uint32_t first, uint32_t end) {
    const NodeModel *m = c->model;
    uint32_t         level = list % c->n_levels;
    const float     *share = c->share + level * (m->n_layers + 1);
    float            sums[NODE_COUNTS] = {0};
    for (uint32_t l = end; l-- > first;) {
        for (uint32_t k = 0; k < m->n_counts; k++)
            sums[k] += layer_time(c, rule->best, l, k, level);
        uint32_t k = least(sums, m->n_counts, planned * (double)(share[l] - share[end]));
        c->end[list * m->n_layers + l] = (uint16_t)end;
        c->cores[list * m->n_layers + l] = m->counts[k];
    }
}

static void form_blocks(const Cut *c, const CutRule *rule, double planned, uint32_t theta,
                        uint32_t level, uint32_t flat) {
    uint32_t n = c->model->n_layers, list = theta * c->n_levels + level;
    double   th = rule->th_lo + (rule->th_hi - rule->th_lo) * theta / (CUT_THETAS - 1);
    Growing  g = {0};
    for (uint32_t l = 0; l < n; l++) {
        double ns = (double)layer_time(c, rule->best, l, flat, level);
        if (l > 0 && closes(c, rule, &g, l, th, level, ns)) {
            close_block(c, rule, planned, list, g.first, l);
            g = (Growing){.first = l};
        }
        g.ns += ns;
        g.needs += c->need[level * n + l];
    }
    close_block(c, rule, planned, list, g.first, n);
}

void cut_init(Cut *c, const CutRule *rule, const NodeTenant *t) {
    double planned = rule->safety * (double)t->qos_ns;
    for (uint32_t level = 0; level < c->n_levels; level++) {
        uint32_t flat = size_layers(c, rule, planned, level);
        for (uint32_t theta = 0; theta < CUT_THETAS; theta++)
            form_blocks(c, rule, planned, theta, level, flat);
    }
}

CutBlock cut_at(const Cut *c, uint32_t theta, uint32_t level, uint32_t layer) {
    if (level >= c->n_levels) level = c->n_levels - 1;
    size_t at = (size_t)(theta * c->n_levels + level) * c->model->n_layers + layer;
    return (CutBlock){c->end[at] - layer, c->cores[at]};
}

uint32_t cut_theta(double load) {
    double clamped = load < 0 ? 0 : load > 1 ? 1 : load;
    return (uint32_t)(clamped * (CUT_THETAS - 1) + 0.5);
}
