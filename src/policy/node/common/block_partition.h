// BlockPartition: a model's layers divided into blocks, with the cores each block needs to keep its
// share of the QoS. Partitions for all loads and interference levels are computed before the run.
#pragma once

#include "base/carve.h"
#include "contract/node.h"

enum { PARTITION_THETAS = 8 };

typedef struct PartitionParams {
    double   lo, hi;          // share of the QoS to plan with, at no load and at full load
    double   th_lo, th_hi;    // tolerance theta, likewise
    double   min_ns, max_ns;  // duration of a block
    uint32_t fixed;           // layers per block; 0: by theta
    bool     best;            // versions of node_best_versions; else version 0
    bool     blind;           // plan for level 0 only
} PartitionParams;

// A list of blocks for each theta (chosen by load) and interference level.
typedef struct BlockPartition {
    const NodeModel *model;
    uint32_t         n_levels;
    uint16_t        *flat;   // [list] fewest cores that run the whole model within the plan
    float           *share;  // [list][n_layers + 1] share of the time from the layer on
    uint16_t        *need;   // [list][layer] fewest cores that keep the layer within its share
    uint16_t        *end;    // [list][layer] end of its block
    uint16_t        *cores;  // [list][layer] fewest cores from the layer to that end
} BlockPartition;

typedef struct PartitionBlock {
    uint32_t n_layers, cores;
} PartitionBlock;

void block_partition_carve(BlockPartition *c, const PartitionParams *params, const NodeTenant *t,
                           Carve *from);
void block_partition_init(BlockPartition *c, const PartitionParams *params, const NodeTenant *t);

static inline uint32_t block_partition_list(const BlockPartition *c, uint32_t theta,
                                            uint32_t level) {
    return theta * c->n_levels + (level < c->n_levels ? level : c->n_levels - 1);
}

// The next block of a request at this layer.
PartitionBlock block_partition_at(const BlockPartition *c, uint32_t list, uint32_t layer);

// The index of theta for a load of 0 (idle) to 1 (all cores wanted).
uint32_t block_partition_theta(double load);
