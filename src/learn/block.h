// Block: the numbers of a network in one piece of memory, so that an optimiser, a target copy, a
// file and a gradient check are single loops over it.
//
// A layer of numbers takes its parameters as a part of a block, its gradients as the same part of a
// second one, and what forward must remember for backward as a cache that the caller owns.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct Block {
    float *at;
    size_t n;
} Block;

Block block_new(Arena *a, size_t n);  // zeroed, on a cache line of its own
Block block_part(Block b, size_t from, size_t n);

static inline float *block_after(float *at, size_t n) { return at ? at + n : NULL; }

void block_zero(Block b);
void block_copy(Block to, Block from);              // a hard update of a target
void block_blend(Block to, Block from, float tau);  // a soft one: to += tau (from - to)
void block_add(Block to, Block from);
void block_scale(Block b, float by);

double block_norm(Block b);              // the square root of the sum of squares
double block_clip(Block b, double max);  // scales b to that norm if it is longer; its norm before
bool   block_finite(Block b);            // no infinity, nothing that is not a number
