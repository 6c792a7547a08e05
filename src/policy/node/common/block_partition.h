// BlockPartition: a model's layers in blocks, and the cores that each needs to keep its share of
// the QoS. All lists that a load or a level can ask for are made suffix_times; at run time only an
// index moves.
#pragma once

#include "base/carve.h"
#include "contract/node.h"

enum { PARTITION_THETAS = 8 };

typedef struct PartitionParams {
    double   lo, hi;        // shares of the QoS that are planned with, at no load and at full load
    double   th_lo, th_hi;  // thresholds, likewise
    double   min_ns, max_ns;  // what a block should take
    uint32_t fixed;           // layers of a block; 0: by threshold
    bool     best;            // the versions that node_best_versions names; otherwise version 0
    bool     blind;           // level 0 whatever the machine says
} PartitionParams;

// Lists of blocks, one for each theta and level. A theta is a load.
typedef struct BlockPartition {
    const NodeModel *model;
    uint32_t         n_levels;
    uint16_t        *flat;  // [list] least cores that keep the whole model within the plan
    float    *share;        // [list][layer, one more than there are] of the time, from the layer on
    uint16_t *need;         // [list][layer] least cores that keep the layer within its share
    uint16_t *end;          // [list][layer] where the block it is in ends
    uint16_t *cores;        // [list][layer] least cores from the layer to that end
} BlockPartition;

typedef struct PartitionBlock {
    uint32_t n_layers, cores;
} PartitionBlock;

void block_partition_carve(BlockPartition *c, const PartitionParams *rule, const NodeTenant *t,
                           Carve *from);
void block_partition_init(BlockPartition *c, const PartitionParams *rule, const NodeTenant *t);

static inline uint32_t block_partition_list(const BlockPartition *c, uint32_t theta,
                                            uint32_t level) {
    return theta * c->n_levels + (level < c->n_levels ? level : c->n_levels - 1);
}

// The block that a request at this layer has before it.
PartitionBlock block_partition_at(const BlockPartition *c, uint32_t list, uint32_t layer);

uint32_t
block_partition_theta(double load);  // the index for a load of 0 (idle) to 1 (all cores wanted)
