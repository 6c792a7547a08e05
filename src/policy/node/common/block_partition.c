// How blocks are formed
//
// 1. share[l] is the share of layer l in the model's time on `flat` cores, the fewest that run the
//    whole model within a * QoS. A layer or block may take its share of a * QoS. On an idle machine
//    `a` is smaller: spare cores shorten latency.
// 2. need[l] is the fewest cores with which layer l stays within its share.
// 3. A block ends before a layer that needs clearly more or fewer cores than the model (a pivot) or
//    than the mean of the block so far, where theta is the tolerance: near 0 every layer is a
//    block, at infinity the model is one. Blocks shorter than min_ns are extended, as they are not
//    worth a dispatch; blocks longer than max_ns are split, as they keep their cores to the end.
// 4. A block requests the fewest cores for all its layers together, so that a demanding layer uses
//    the slack of its neighbours.
#include "policy/node/common/block_partition.h"

#include <math.h>

static float layer_time(const BlockPartition *c, bool best, uint32_t l, uint32_t k,
                        uint32_t level) {
    uint32_t v = best ? node_best_versions(c->model, k, level)[l] : 0;
    return node_time(c->model, l, v, k, level);
}

// The smallest k that fits into the time; the fastest if none does.
static uint32_t fewest(const float *times, uint32_t n, double fits) {
    uint32_t fastest = 0;
    for (uint32_t k = 0; k < n; k++) {
        if ((double)times[k] <= fits) return k;
        if (times[k] < times[fastest]) fastest = k;
    }
    return fastest;
}

void block_partition_carve(BlockPartition *c, const PartitionParams *params, const NodeTenant *t,
                           Carve *from) {
    uint32_t n = t->model->n_layers, levels = params->blind ? 1 : NODE_LEVELS;
    size_t   lists = (size_t)PARTITION_THETAS * levels;
    *c = (BlockPartition){.model = t->model, .n_levels = levels};
    c->flat = carve(from, uint16_t, lists);
    c->share = carve(from, float, lists *(n + 1));
    c->need = carve(from, uint16_t, lists * n);
    c->end = carve(from, uint16_t, lists * n);
    c->cores = carve(from, uint16_t, lists * n);
}

typedef struct Builder {
    const BlockPartition  *partition;
    const PartitionParams *params;
    uint32_t               list, level, flat;  // flat: index into counts
    double                 theta, planned;
    float                 *share;
    uint16_t              *need, *end, *cores;
} Builder;

static Builder builder(const BlockPartition *c, const PartitionParams *params, double qos_ns,
                       uint32_t theta, uint32_t level) {
    double   load = (double)theta / (PARTITION_THETAS - 1);
    uint32_t list = theta * c->n_levels + level, n = c->model->n_layers;
    return (Builder){.partition = c,
                     .params = params,
                     .list = list,
                     .level = level,
                     .theta = params->th_lo + (params->th_hi - params->th_lo) * load,
                     .planned = (params->lo + (params->hi - params->lo) * load) * qos_ns,
                     .share = c->share + (size_t)list * (n + 1),
                     .need = c->need + (size_t)list * n,
                     .end = c->end + (size_t)list * n,
                     .cores = c->cores + (size_t)list * n};
}

static float time_of(const Builder *f, uint32_t l, uint32_t k) {
    return layer_time(f->partition, f->params->best, l, k, f->level);
}

// Steps 1 and 2.
static void size_layers(Builder *f) {
    const NodeModel *m = f->partition->model;
    float            sums[NODE_COUNTS] = {0}, times[NODE_COUNTS];
    for (uint32_t l = 0; l < m->n_layers; l++)
        for (uint32_t k = 0; k < m->n_counts; k++) sums[k] += time_of(f, l, k);
    f->flat = fewest(sums, m->n_counts, f->planned);
    f->partition->flat[f->list] = m->counts[f->flat];
    for (uint32_t l = m->n_layers; l-- > 0;)
        f->share[l] = f->share[l + 1] + time_of(f, l, f->flat) / sums[f->flat];
    for (uint32_t l = 0; l < m->n_layers; l++) {
        for (uint32_t k = 0; k < m->n_counts; k++) times[k] = time_of(f, l, k);
        double within = f->planned * (double)(f->share[l] - f->share[l + 1]);
        f->need[l] = m->counts[fewest(times, m->n_counts, within)];
    }
}

typedef struct OpenBlock {
    uint32_t first;
    double   ns, needs;  // sums over its layers
} OpenBlock;

static bool closes(const Builder *f, const OpenBlock *g, uint32_t l, double ns) {
    const PartitionParams *params = f->params;
    if (params->fixed > 0) return l - g->first >= params->fixed;
    double need = f->need[l], flat = f->partition->flat[f->list];
    bool   pivot = need > (1.0 + f->theta) * flat || need < flat / (1.0 + f->theta);
    bool   differs = fabs(need - g->needs / (l - g->first)) > f->theta * flat;
    return ((pivot || differs) && g->ns >= params->min_ns) || g->ns + ns > params->max_ns;
}

// Step 4; a request may enter a block at any of its layers.
static void close_block(const Builder *f, uint32_t first, uint32_t end) {
    const NodeModel *m = f->partition->model;
    float            sums[NODE_COUNTS] = {0};
    for (uint32_t l = end; l-- > first;) {
        for (uint32_t k = 0; k < m->n_counts; k++) sums[k] += time_of(f, l, k);
        double within = f->planned * (double)(f->share[l] - f->share[end]);
        f->end[l] = (uint16_t)end;
        f->cores[l] = m->counts[fewest(sums, m->n_counts, within)];
    }
}

static void form_blocks(const Builder *f) {
    uint32_t  n = f->partition->model->n_layers;
    OpenBlock g = {0};
    for (uint32_t l = 0; l < n; l++) {
        double ns = (double)time_of(f, l, f->flat);
        if (l > 0 && closes(f, &g, l, ns)) {
            close_block(f, g.first, l);
            g = (OpenBlock){.first = l};
        }
        g.ns += ns;
        g.needs += f->need[l];
    }
    close_block(f, g.first, n);
}

void block_partition_init(BlockPartition *c, const PartitionParams *params, const NodeTenant *t) {
    for (uint32_t theta = 0; theta < PARTITION_THETAS; theta++)
        for (uint32_t level = 0; level < c->n_levels; level++) {
            Builder f = builder(c, params, (double)t->qos_ns, theta, level);
            size_layers(&f);
            form_blocks(&f);
        }
}

PartitionBlock block_partition_at(const BlockPartition *c, uint32_t list, uint32_t layer) {
    size_t at = (size_t)list * c->model->n_layers + layer;
    return (PartitionBlock){c->end[at] - layer, c->cores[at]};
}

uint32_t block_partition_theta(double load) {
    double clamped = load < 0 ? 0 : load > 1 ? 1 : load;
    return (uint32_t)(clamped * (PARTITION_THETAS - 1) + 0.5);
}
