// NdIter: visits every index of a shape in row-major order, with offsets of strided operands beside
// it.
#pragma once

#include <stdint.h>

#include "base/tensor.h"

enum { ND_ITER_MAX = 4 };

// for (NdIter w = nd_iter_begin(...); nd_iter_more(&w); nd_iter_next(&w)) use w.at (linear index),
// w.off[k].
typedef struct NdIter {
    int32_t rank, n;
    int64_t dims[TENSOR_MAX_RANK], index[TENSOR_MAX_RANK];
    int64_t stride[ND_ITER_MAX][TENSOR_MAX_RANK];
    int64_t off[ND_ITER_MAX];  // element offset into each operand
    int64_t at, count;
} NdIter;

NdIter nd_iter_begin(int32_t rank, const int64_t *dims);
void   nd_iter_strides(NdIter        *w,
                       const int64_t *stride);  // add an operand with these element strides
void   nd_iter_broadcast(NdIter       *w,
                         const Tensor *operand);  // add one that broadcasts to the walked shape
// Walks indices; off[0] is where `of` begins on the same line along axis, step one index further.
NdIter nd_iter_along(const Tensor *indices, const Tensor *of, int32_t axis, int64_t *step);
static inline int nd_iter_more(const NdIter *w) { return w->at < w->count; }
void              nd_iter_next(NdIter *w);

void nd_iter_contiguous(int32_t rank, const int64_t *dims, int64_t *stride);  // row-major strides

// AxisIter: a tensor as sets of elements along chosen dimensions, each visited in strided runs.

// for (NdIter k = f.kept; nd_iter_more(&k); nd_iter_next(&k))         one fiber, number k.at
//     for (NdIter r = f.runs; nd_iter_more(&r); nd_iter_next(&r))     n elements from k.off[0] +
//     r.off[0] on,
//                                                             stride apart
typedef struct AxisIter {
    NdIter  kept, runs;
    int64_t n, stride;
    int64_t length;  // elements of a fiber
} AxisIter;

AxisIter axis_iter_of(const Tensor *x, const bool along[TENSOR_MAX_RANK]);

// BroadcastIter: operands broadcast to one shape, cut into rows in which each is contiguous or
// constant.

// for (NdIter w = r.walk; nd_iter_more(&w); nd_iter_next(&w)): row w.at starts at w.at * n in the
// result and at w.off[k] in operand k, which advances by step[k] (0 or 1).
typedef struct BroadcastIter {
    NdIter  walk;
    int64_t n;  // elements of a row
    int64_t step[ND_ITER_MAX];
} BroadcastIter;

BroadcastIter broadcast_iter_of(const Tensor *out, const Tensor *const *in, int32_t n_in);
