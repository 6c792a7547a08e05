// NodeDemand: the demand of a model's layers on cores, shared cache and memory bandwidth, from
// which the simulator computes times under contention.
#pragma once

#include "contract/node.h"

enum {
    DEMAND_SHARES = 6,        // cache shares: 0, 1/5 ... 1 of a slice
    DEMAND_SLICE_COUNTS = 10  // tabulated numbers of slices, at most
};

typedef struct NodeDemand {
    uint32_t     n_layers, n_counts, n_slices;
    uint16_t     slices[DEMAND_SLICE_COUNTS];  // ascending, the first is 1
    const float *core_ns;     // [layer][version][count] lower bound: arithmetic and L3 traffic
    const float *bytes;       // [layer][version][slices][share] moved from memory
    const float *hot_bytes;   // [layer][version] footprint in the shared cache
    const float *read_bytes;  // [layer] inputs produced by the previous layer
} NodeDemand;

static inline const float *demand_bytes(const NodeDemand *d, uint32_t l, uint32_t v, uint32_t s) {
    return d->bytes + ((size_t)(l * NODE_VERSIONS + v) * d->n_slices + s) * DEMAND_SHARES;
}

static inline float demand_core_ns(const NodeDemand *d, uint32_t l, uint32_t v, uint32_t k) {
    return d->core_ns[(size_t)(l * NODE_VERSIONS + v) * d->n_counts + k];
}

// Index of the smallest tabulated number of slices that is at least n; or of the largest.
static inline uint32_t demand_slices(const NodeDemand *d, uint32_t n) {
    uint32_t s = 0;
    while (s + 1 < d->n_slices && d->slices[s] < n) s++;
    return s;
}

// Bytes moved with that share of each slice, 0 to 1, interpolated.
static inline double demand_at(const float *bytes, double share) {
    double   x = share * (DEMAND_SHARES - 1);
    uint32_t i = x < 0 ? 0 : x >= DEMAND_SHARES - 1 ? DEMAND_SHARES - 2 : (uint32_t)x;
    double   part = x - i;
    return (double)bytes[i] + ((double)bytes[i + 1] - (double)bytes[i]) * part;
}
