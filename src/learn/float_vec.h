// FloatVec: the numbers of a network in one piece of memory, so that an optimiser, a target copy, a
// file and a gradient check are single loops over it.
//
// A layer of numbers takes its parameters as a part of a block, its gradients as the same part of a
// second one, and what forward must remember for backward as a cache that the caller owns.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct FloatVec {
    float *at;
    size_t n;
} FloatVec;

FloatVec float_vec_new(Arena *a, size_t n);  // zeroed, on a cache line of its own
FloatVec float_vec_part(FloatVec b, size_t from, size_t n);

static inline float *float_vec_after(float *at, size_t n) { return at ? at + n : NULL; }

void float_vec_zero(FloatVec b);
void float_vec_copy(FloatVec to, FloatVec from);              // a hard update of a target
void float_vec_blend(FloatVec to, FloatVec from, float tau);  // a soft one: to += tau (from - to)
void float_vec_add(FloatVec to, FloatVec from);
void float_vec_scale(FloatVec b, float by);

double float_vec_norm(FloatVec b);  // the square root of the sum of squares
double float_vec_clip(FloatVec b,
                      double   max);    // scales b to that norm if it is longer; its norm before
bool   float_vec_finite(FloatVec b);  // no infinity, nothing that is not a number
