// Reduce: many elements into one; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

typedef enum RefReduce {
#define X(id, start, real, sint, uint) REF_REDUCE_##id,
#include "kernel/ref_reduce.def"
#undef X
    REF_REDUCE_COUNT
} RefReduce;

// Reduces the dimensions marked in along; y has the kept ones, in order. Reals are summed in
// double, integers wrap; an integer mean is cut.
void ref_reduce(RefReduce f, const bool along[TENSOR_MAX_RANK], const Tensor *x, Tensor *y);
