// Rowwise: softmax and norms: sets of numbers, each brought to a common sum, mean or size.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernel/isa.h"

// How the numbers v of a set with mean m and variance s^2 are changed.
typedef enum RowOp {
    ROW_SOFTMAX,
    ROW_LOG_SOFTMAX,
    ROW_VARIANCE,   // (v - m) / sqrt(s^2 + epsilon)
    ROW_DEVIATION,  // (v - m) / (s + epsilon)
    ROW_RMS,        // v / sqrt(mean of v^2 + epsilon)
    ROW_L1,         // v / sum of |v|; a set of zeros stays
    ROW_L2,         // v / sqrt(sum of v^2); a set of zeros stays
} RowOp;

// What a number of a norm's result is multiplied with, and what is added then.
typedef enum RowScale {
    ROW_SCALE_EACH,      // [n]: by its place in the set
    ROW_SCALE_SEGMENTS,  // [groups][n / segment]: one for every `segment` numbers of a set
    ROW_SCALE_LANES,     // [groups][n / segment][lanes]: likewise, in blocks of channels
    ROW_SCALE_PLACES,    // [groups][inner]: one for a set
} RowScale;

// x is [rows][n][inner]; a set is the n numbers at one row and one place of inner.
typedef struct Rowwise {
    RowOp    op;
    size_t   rows, n, inner;
    float    epsilon;
    RowScale scale;
    size_t   groups, segment;  // row r has the scales of group r % groups
} Rowwise;

typedef struct RowwiseData {
    const float *x, *add, *add_bias;  // x + add + add_bias[n] is normalised; NULL: x alone
    const float *scale, *bias;        // NULL: 1, 0
    float       *y;                   // may be x or add
    float       *sum;                 // x + add + add_bias; NULL: not wanted
    float       *mean, *inverse;      // [rows][inner], subtracted and multiplied; NULL: not wanted
} RowwiseData;

// Along the middle of [outer][n][inner]. Of norms only scales of PLACES may follow when inner > 1.
Rowwise rowwise_axis(RowOp op, size_t outer, size_t n, size_t inner, float epsilon);

// Every channel of every image by itself.
Rowwise rowwise_instance(size_t images, size_t channels, size_t pixels, float epsilon);
Rowwise rowwise_instance_blocked(const Isa *isa, size_t images, size_t channels, size_t pixels,
                                 float epsilon);

// Groups of channels; `own`: a scale per channel, else one per group.
Rowwise rowwise_group(size_t images, size_t channels, size_t pixels, size_t groups, bool own,
                      float epsilon);
// False: the channels of a group do not fill blocks. The scale is per channel.
bool rowwise_group_blocked(const Isa *isa, size_t images, size_t channels, size_t pixels,
                           size_t groups, float epsilon, Rowwise *out);

uint32_t rowwise_tasks(const Rowwise *r, const Isa *isa);  // isa->rowwise(r, data, part)

enum { ROWWISE_VECS = 4 };  // vectors of places a task takes where inner > 1
