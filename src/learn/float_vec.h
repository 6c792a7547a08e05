// FloatVec: a contiguous vector of floats: all parameters of a network, their gradients or moments,
// so that optimiser, target update, file and gradient check are single loops.
//
// A layer takes its parameters as a part of one vector, its gradients as the same part of another,
// and intermediate results of forward for backward in a cache that the caller owns.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct FloatVec {
    float *at;
    size_t n;
} FloatVec;

FloatVec float_vec_new(Arena *a, size_t n);  // zeroed, aligned to 64 bytes
FloatVec float_vec_part(FloatVec b, size_t from, size_t n);

static inline float *float_vec_after(float *at, size_t n) { return at ? at + n : NULL; }

void float_vec_zero(FloatVec b);
void float_vec_copy(FloatVec to, FloatVec from);              // hard update of a target
void float_vec_blend(FloatVec to, FloatVec from, float tau);  // soft update: to += tau (from - to)
void float_vec_add(FloatVec to, FloatVec from);
void float_vec_scale(FloatVec b, float by);

double float_vec_norm(FloatVec b);  // Euclidean
double float_vec_clip(FloatVec b,
                      double   max);    // scales b to at most this norm; returns the norm before
bool   float_vec_finite(FloatVec b);  // no infinity or NaN
