// Normalize: softmax and norms: sets of numbers, each brought to a common sum, mean or size.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernel/isa.h"

// How the numbers v of a set with mean m and variance s^2 are changed.
typedef enum NormalizeOp {
    NORMALIZE_SOFTMAX,
    NORMALIZE_LOG_SOFTMAX,
    NORMALIZE_VARIANCE,   // (v - m) / sqrt(s^2 + epsilon)
    NORMALIZE_DEVIATION,  // (v - m) / (s + epsilon)
    NORMALIZE_RMS,        // v / sqrt(mean of v^2 + epsilon)
    NORMALIZE_L1,         // v / sum of |v|; a set of zeros stays
    NORMALIZE_L2,         // v / sqrt(sum of v^2); a set of zeros stays
} NormalizeOp;

// What a number of a norm's result is multiplied with, and what is added then.
typedef enum NormalizeScale {
    NORMALIZE_SCALE_PER_ELEMENT,  // [n]: by its place in the set
    NORMALIZE_SCALE_PER_SEGMENT,  // [groups][n / segment]: one for every `segment` numbers of a set
    NORMALIZE_SCALE_PER_LANE,     // [groups][n / segment][lanes]: likewise, in blocks of channels
    NORMALIZE_SCALE_PER_SET,      // [groups][inner]: one for a set
} NormalizeScale;

// x is [rows][n][inner]; a set is the n numbers at one row and one place of inner.
typedef struct Normalize {
    NormalizeOp    op;
    size_t         rows, n, inner;
    float          epsilon;
    NormalizeScale scale;
    size_t         groups, segment;  // row r has the scales of group r % groups
} Normalize;

typedef struct NormalizeArgs {
    const float *x, *add, *add_bias;  // x + add + add_bias[n] is normalised; NULL: x alone
    const float *scale, *bias;        // NULL: 1, 0
    float       *y;                   // may be x or add
    float       *sum;                 // x + add + add_bias; NULL: not wanted
    float       *mean, *inverse;      // [rows][inner], subtracted and multiplied; NULL: not wanted
} NormalizeArgs;

// Along the middle of [outer][n][inner]. Of norms only scales of PLACES may follow when inner > 1.
Normalize normalize_axis(NormalizeOp op, size_t outer, size_t n, size_t inner, float epsilon);

// Every channel of every image by itself.
Normalize normalize_instance(size_t images, size_t channels, size_t pixels, float epsilon);
Normalize normalize_instance_blocked(const Isa *isa, size_t images, size_t channels, size_t pixels,
                                     float epsilon);

// Groups of channels; `own`: a scale per channel, else one per group.
Normalize normalize_group(size_t images, size_t channels, size_t pixels, size_t groups, bool own,
                          float epsilon);
// False: the channels of a group do not fill blocks. The scale is per channel.
bool normalize_group_blocked(const Isa *isa, size_t images, size_t channels, size_t pixels,
                             size_t groups, float epsilon, Normalize *out);

uint32_t normalize_tasks(const Normalize *r, const Isa *isa);  // isa->normalize(r, data, part)

enum { NORMALIZE_VECS = 4 };  // vectors of places a task takes where inner > 1

// Reduce: many numbers into one along an axis: sums, means, extremes.

typedef enum ReduceOp {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM_SQUARE,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_OPS
} ReduceOp;

// x is [outer][n][inner], y is [outer][inner]. A blocked tensor folds over its pixels with
// outer = images * blocks and inner = lanes.
typedef struct Reduce {
    ReduceOp op;
    size_t   outer, n, inner;
} Reduce;

enum { REDUCE_VECS = 8 };  // vectors of inner that a task takes

uint32_t reduce_tasks(const Reduce *f, const Isa *isa);  // isa->reduce(f, x, y, part)
