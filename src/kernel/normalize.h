// Normalize: softmax and normalisations of sets of floats. Reduce: reductions along an axis.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernel/isa.h"

// Result for an element v of a set with mean m and variance s^2.
typedef enum NormalizeOp {
    NORMALIZE_SOFTMAX,
    NORMALIZE_LOG_SOFTMAX,
    NORMALIZE_VARIANCE,   // (v - m) / sqrt(s^2 + epsilon)
    NORMALIZE_DEVIATION,  // (v - m) / (s + epsilon)
    NORMALIZE_RMS,        // v / sqrt(mean of v^2 + epsilon)
    NORMALIZE_L1,         // v / sum of |v|; a set of zeros stays
    NORMALIZE_L2,         // v / sqrt(sum of v^2); a set of zeros stays
} NormalizeOp;

// Shape of the scale and bias that a normalisation applies to its result.
typedef enum NormalizeScale {
    NORMALIZE_SCALE_PER_ELEMENT,  // [n]: by position in the set
    NORMALIZE_SCALE_PER_SET,      // [groups][inner]: one per set
} NormalizeScale;

// x is [rows][n][inner]; a set is the n floats at one row and one position of inner.
typedef struct Normalize {
    NormalizeOp    op;
    size_t         rows, n, inner;
    float          epsilon;
    NormalizeScale scale;
    size_t         groups;  // row r uses the scales of group r % groups
} Normalize;

typedef struct NormalizeArgs {
    const float *x, *add, *add_bias;  // input: x + add + add_bias[n]; add NULL: x alone
    const float *scale, *bias;        // NULL: 1, 0
    float       *y;                   // may be x or add
    float       *sum;                 // receives x + add + add_bias; may be NULL
    float       *mean, *inverse;      // [rows][inner]: subtracted, multiplied; may be NULL
} NormalizeArgs;

// Along the middle of [outer][n][inner]. With inner > 1, normalisations take PER_SET scales only.
Normalize normalize_axis(NormalizeOp op, size_t outer, size_t n, size_t inner, float epsilon);

// Instance normalisation: each channel of each image is a set.
Normalize normalize_instance(size_t images, size_t channels, size_t pixels, float epsilon);

enum { NORMALIZE_VECS = 4 };  // vectors of inner positions per task if inner > 1

// Vector kernel: isa->normalize(&normalize, &args, part).
uint32_t normalize_tasks(const Normalize *r, const Isa *isa);

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

// x is [outer][n][inner], y is [outer][inner]. A blocked tensor is reduced over its pixels with
// outer = images * blocks and inner = lanes.
typedef struct Reduce {
    ReduceOp op;
    size_t   outer, n, inner;
} Reduce;

enum { REDUCE_VECS = 8 };  // vectors of inner per task

// Vector kernel: isa->reduce(&reduce, x, y, part).
uint32_t reduce_tasks(const Reduce *f, const Isa *isa);
