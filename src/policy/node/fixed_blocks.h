// FixedBlocks: blocks of a fixed number of layers, sized once, as if every request had the machine
// alone.
#pragma once

#include "contract/node.h"

typedef struct FixedBlocksParams {
    uint32_t layers;   // of a block
    uint32_t quantum;  // cores are given in multiples of that many
    double   safety;   // share of the QoS that cores are sized for
    double   start;    // least share of the cores wanted that a block starts with
    bool     grow;     // blocks that started with less get more as cores become free
} FixedBlocksParams;

size_t   fixed_blocks_size(const NodeSetup *setup, const void *settings);
void     fixed_blocks_init(void *state, const NodeSetup *setup, FixedBlocksParams rule);
uint32_t fixed_blocks_decide(void *state, const NodeView *view, NodeAction *out, uint32_t max);
