// NodeModel construction: tables filled layer by layer, then summed up.
#pragma once

#include "node/node_model.h"

typedef struct ModelTables {
    NodeModel  *model;
    NodeDemand *demand;
    NodeLayer  *layers;
    float      *times, *core_ns, *bytes, *hot_bytes, *read_bytes;
} ModelTables;

// Allocates the tables of a model with name, n_layers, counts and slices set.
MUST_USE Err model_begin(ModelTables *t, NodeModel *m, NodeDemand *d, Arena *a);
void         model_copy_layer(ModelTables *t, uint32_t from, uint32_t to);  // all but its name
MUST_USE Err model_end(ModelTables *t, Arena *a);  // computes the sums of remaining layers

float *model_times(ModelTables *t, uint32_t l, uint32_t v, uint32_t k);  // [NODE_LEVELS]
float *model_bytes(ModelTables *t, uint32_t l, uint32_t v, uint32_t s);  // [DEMAND_SHARES]

// Selects few of n candidate versions timed under several conditions: the fastest one
// alone first, then those that lower the worst loss most. Returns the number selected.
typedef struct ModelChoice {
    const float *times;  // [n][occasions]
    const float *moved;  // [n] bytes from memory: breaks ties, and the least is always kept
    uint32_t     n, occasions;
    const bool  *alone;  // [occasions] on a quiet machine
} ModelChoice;

uint32_t model_choose(const ModelChoice *c, float *best, uint32_t kept[NODE_VERSIONS]);
