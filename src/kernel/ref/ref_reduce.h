// Reduce: many elements into one; the slow, obvious truth.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

typedef enum RefReduce {
#define X(id, start, real, sint, uint) REF_REDUCE_##id,
#include "kernel/ref/ref_reduce.def"
#undef X
    REF_REDUCE_COUNT
} RefReduce;

// Reduces the dimensions marked in along; y has the kept ones, in order. Reals are summed in
// double, integers wrap; an integer mean is cut.
void ref_reduce(RefReduce f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y);

// Arg: where the largest or smallest element lies; the slow, obvious truth.

// Index (int64) of the largest or smallest element along one dimension, which is not empty; the
// first of equals or the last. Not-a-number counts as the extreme.
void ref_arg(bool largest, bool last, int32_t axis, const Tensor *x, Tensor *y);

// Cumsum: running sums along a dimension; the slow, obvious truth.

// Running sums along one dimension; exclusive ones leave out the element itself.
void ref_cumsum(bool exclusive, bool reverse, int32_t axis, const Tensor *x, Tensor *y);

// Sort: the largest or smallest elements along an axis, with where they stood.

// values and indices have k along the axis. Equal elements keep their order; not-a-number counts
// as larger than every number. indices may be NULL. Fails when scratch is full.
MUST_USE Err ref_topk(const Tensor *x, int32_t axis, bool largest, Arena *scratch, Tensor *values,
                      Tensor *indices);
