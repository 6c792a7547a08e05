// FixedBlocks: blocks of a fixed number of layers on core counts computed before the run, without
// interference; the common part of fcfs, layers and blocks.
#pragma once

#include "contract/node.h"

typedef struct FixedBlocksParams {
    uint32_t layers;     // per block
    uint32_t quantum;    // cores are allocated in multiples of this
    double   safety;     // share of the QoS that core counts are sized for
    double   min_start;  // a block starts with at least this share of its cores
    bool     grow;       // blocks that started with fewer cores get more as cores become free
} FixedBlocksParams;

size_t   fixed_blocks_size(const NodeSetup *setup, const void *settings);
void     fixed_blocks_init(void *state, const NodeSetup *setup, FixedBlocksParams params);
uint32_t fixed_blocks_decide(void *state, const NodeView *view, NodeAction *out, uint32_t max);
