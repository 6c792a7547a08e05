// NdIter: iterates over all indices of a shape in row-major order and tracks the offsets of up to
// four strided operands. It ends early if the work was told to stop (base/work_stop.h).
#pragma once

#include <stdint.h>

#include "base/tensor.h"

enum { ND_ITER_MAX = 4 };

// for (NdIter w = nd_iter_begin(...); nd_iter_more(&w); nd_iter_next(&w))
//     w.at is the linear index, w.off[k] the element offset into operand k.
typedef struct NdIter {
    int32_t rank, n;
    int64_t dims[TENSOR_MAX_RANK], index[TENSOR_MAX_RANK];
    int64_t stride[ND_ITER_MAX][TENSOR_MAX_RANK];
    int64_t off[ND_ITER_MAX];
    int64_t at, count;
} NdIter;

NdIter nd_iter_begin(int32_t rank, const int64_t *dims);
void   nd_iter_next(NdIter *w);

static inline int nd_iter_more(const NdIter *w) { return w->at < w->count; }

// Add an operand: with these element strides, or one that broadcasts to the iterated shape.
void nd_iter_strides(NdIter *w, const int64_t *stride);
void nd_iter_broadcast(NdIter *w, const Tensor *operand);

// Iterates over `indices`. off[0] is the offset in `of` of index 0 along axis, all other
// coordinates equal; *step is the element stride of axis.
NdIter nd_iter_along(const Tensor *indices, const Tensor *of, int32_t axis, int64_t *step);

void nd_iter_contiguous(int32_t rank, const int64_t *dims, int64_t *stride);  // row-major strides

// AxisIter: a tensor as sets of elements along the chosen axes; each set is visited in strided
// runs.
//     for (NdIter k = f.kept; nd_iter_more(&k); nd_iter_next(&k))      set number k.at
//         for (NdIter r = f.runs; nd_iter_more(&r); nd_iter_next(&r))  n elements from
//             k.off[0] + r.off[0], `stride` apart
typedef struct AxisIter {
    NdIter  kept, runs;
    int64_t n, stride;
    int64_t length;  // elements per set
} AxisIter;

AxisIter axis_iter_of(const Tensor *x, const bool along[TENSOR_MAX_RANK]);

// BroadcastIter: operands that broadcast to one shape, cut into rows along which each operand is
// contiguous or constant.
//     for (NdIter w = b.rows; nd_iter_more(&w); nd_iter_next(&w))
//         row w.at starts at w.at * n in the result and at w.off[k] in operand k, which advances
//         by step[k] (0 or 1) per element.
typedef struct BroadcastIter {
    NdIter  rows;
    int64_t n;  // elements per row
    int64_t step[ND_ITER_MAX];
} BroadcastIter;

BroadcastIter broadcast_iter_of(const Tensor *out, const Tensor *const *in, int32_t n_in);
