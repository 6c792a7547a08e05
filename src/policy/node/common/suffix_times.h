// SuffixTimes: the time of a model's layers from each layer on, by core count; times of any range
// of layers are differences.
//
// Core counts are adjacent in memory, so that a search over them stays within a cache line or two.
#pragma once

#include "base/carve.h"
#include "contract/node.h"

typedef struct SuffixTimes {
    const NodeModel *model;
    uint32_t         n_counts, n_levels;
    float           *rest;  // [level][n_layers + 1][count] time from the layer on
} SuffixTimes;

// n_levels: 1 for policies that ignore interference, or NODE_LEVELS.
void suffix_times_carve(SuffixTimes *a, const NodeModel *m, uint32_t n_levels, Carve *from);
// picks: versions to use, laid out like NodeModel.picks; NULL: version 0 of each layer.
void suffix_times_init(SuffixTimes *a, const uint8_t *picks);

static inline const float *suffix_times_at(const SuffixTimes *a, uint32_t level, uint32_t l) {
    return a->rest + (size_t)(level * (a->model->n_layers + 1) + l) * a->n_counts;
}

// Time of layers [l, end) on counts[k] cores.
static inline float suffix_times_time(const SuffixTimes *a, uint32_t level, uint32_t l,
                                      uint32_t end, uint32_t k) {
    return suffix_times_at(a, level, l)[k] - suffix_times_at(a, level, end)[k];
}

// The smallest k that runs layers [l, end) within ns; n_counts if none does.
uint32_t suffix_times_least(const SuffixTimes *a, uint32_t level, uint32_t l, uint32_t end,
                            double ns);
// The k with the least time.
uint32_t suffix_times_fastest(const SuffixTimes *a, uint32_t level, uint32_t l, uint32_t end);
