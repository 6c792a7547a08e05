// Block: the numbers of a network in one piece of memory, so that an optimiser, a target copy, a
// file and a gradient check are single loops over it.
//
// A layer of numbers takes its parameters as a part of a block, its gradients as the same part of a
// second one, and what forward must remember for backward as a cache that the caller owns.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Block {
    float *at;
    size_t n;
} Block;
