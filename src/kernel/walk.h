// Walk: visits every index of a shape in row-major order, with offsets of strided operands beside
// it.
#pragma once

#include <stdint.h>

#include "base/tensor.h"

enum { WALK_MAX = 4 };

// for (Walk w = walk_begin(...); walk_more(&w); walk_next(&w)) use w.at (linear index), w.off[k].
typedef struct Walk {
    int32_t rank, n;
    int64_t dims[TENSOR_MAX_RANK], index[TENSOR_MAX_RANK];
    int64_t stride[WALK_MAX][TENSOR_MAX_RANK];
    int64_t off[WALK_MAX];  // element offset into each operand
    int64_t at, count;
} Walk;

Walk walk_begin(int32_t rank, const int64_t *dims);
void walk_strides(Walk *w, const int64_t *stride);    // add an operand with these element strides
void walk_broadcast(Walk *w, const Tensor *operand);  // add one that broadcasts to the walked shape
// Walks indices; off[0] is where `of` begins on the same line along axis, step one index further.
Walk              walk_along(const Tensor *indices, const Tensor *of, int32_t axis, int64_t *step);
static inline int walk_more(const Walk *w) { return w->at < w->count; }
void              walk_next(Walk *w);

void walk_contiguous(int32_t rank, const int64_t *dims, int64_t *stride);  // row-major strides
