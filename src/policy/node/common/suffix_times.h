// SuffixTimes: how long a model's layers take together, by cores; laid out so that looking through
// the counts for the least that will do stays within a cache line or two.
#pragma once

#include "base/carve.h"
#include "contract/node.h"

typedef struct SuffixTimes {
    const NodeModel *model;
    uint32_t         n_counts, n_levels;
    float           *rest;  // [level][layer, one more than there are][count] from the layer on
} SuffixTimes;

// n_levels: 1 for who sees no interference, or NODE_LEVELS.
void suffix_times_carve(SuffixTimes *a, const NodeModel *m, uint32_t n_levels, Carve *from);
// picks: as node_best_versions's table, the versions to be used; NULL: version 0 of each layer.
void suffix_times_init(SuffixTimes *a, const uint8_t *picks);

static inline const float *suffix_times_at(const SuffixTimes *a, uint32_t level, uint32_t l) {
    return a->rest + (size_t)(level * (a->model->n_layers + 1) + l) * a->n_counts;
}

// Layers [l, end) on counts[k] cores.
static inline float suffix_times_time(const SuffixTimes *a, uint32_t level, uint32_t l,
                                      uint32_t end, uint32_t k) {
    return suffix_times_at(a, level, l)[k] - suffix_times_at(a, level, end)[k];
}

// The least k that does layers [l, end) within ns; n_counts when none does.
uint32_t suffix_times_least(const SuffixTimes *a, uint32_t level, uint32_t l, uint32_t end,
                            double ns);
// The k that does them in the least time.
uint32_t suffix_times_fastest(const SuffixTimes *a, uint32_t level, uint32_t l, uint32_t end);
// The last layer of a block from l on that takes no more than ns, plus one; at least l + 1.
uint32_t suffix_times_reach(const SuffixTimes *a, uint32_t level, uint32_t l, uint32_t k,
                            double ns);
