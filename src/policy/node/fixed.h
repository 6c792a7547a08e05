// Fixed: blocks of a fixed number of layers, sized once, as if every request had the machine alone.
#pragma once

#include "contract/node.h"

typedef struct FixedRule {
    uint32_t layers;   // of a block
    uint32_t quantum;  // cores are given in multiples of that many
    double   safety;   // share of the QoS that cores are sized for
    double   start;    // least share of the cores wanted that a block starts with
    bool     grow;     // blocks that started with less get more as cores become free
} FixedRule;

size_t   fixed_size(const NodeSetup *setup, const void *settings);
void     fixed_init(void *state, const NodeSetup *setup, FixedRule rule);
uint32_t fixed_decide(void *state, const NodeView *view, NodeAction *out, uint32_t max);
