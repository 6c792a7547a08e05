// Reference operators along axes: reductions, arg-min/max, cumulative sums, top-k.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

typedef enum RefReduce {
#define X(id, start, real, sint, uint) REF_REDUCE_##id,
#include "kernel/ref/ref_reduce.def"
#undef X
    REF_REDUCE_COUNT
} RefReduce;

// Reduces the marked axes; y has the other dimensions, in order. Floats accumulate in double,
// integers wrap; an integer mean truncates.
void ref_reduce(RefReduce f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y);

// Index (int64) of the largest or smallest element along an axis that is not empty; ties go to the
// first or the last. NaN counts as the extreme.
void ref_arg(bool largest, bool last, int32_t axis, const Tensor *x, Tensor *y);

// Cumulative sums along an axis; exclusive sums omit the element itself.
void ref_cumsum(bool exclusive, bool reverse, int32_t axis, const Tensor *x, Tensor *y);

// The k largest or smallest elements along an axis; k is the size of values along it. Stable; NaN
// is larger than every number. indices may be NULL. Fails if scratch is full.
MUST_USE Err ref_topk(const Tensor *x, int32_t axis, bool largest, Arena *scratch, Tensor *values,
                      Tensor *indices);
