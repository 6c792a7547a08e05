// Move: copies elements of any size between layouts; the slow, obvious truth of every reordering.
#pragma once

#include "base/tensor.h"

// One side of a copy: the first element and the step in each dimension, counted in elements.
typedef struct RefStrided {
    void   *data;
    int64_t start;
    int64_t stride[TENSOR_MAX_RANK];
} RefStrided;

RefStrided ref_strided(const Tensor *t);  // all of t, row by row

// Copies dims[rank] elements of size bytes. The sides must not overlap.
void ref_copy(int32_t rank, const int64_t *dims, size_t size, RefStrided to, RefStrided from);

// y[i, j, ...] = x[pick[0][i], pick[1][j], ...]; *fill where a pick is negative. Ranks are equal.
void ref_take(const Tensor *x, int64_t *const *pick, const void *fill, Tensor *y);

typedef enum RefPad { REF_PAD_CONSTANT, REF_PAD_EDGE, REF_PAD_REFLECT, REF_PAD_WRAP } RefPad;

// The pick of one padded axis of n: kept elements from drop on stay, begin before them are new.
typedef struct RefPadAxis {
    int64_t begin, drop, kept;
} RefPadAxis;
void ref_take_pad(RefPad mode, RefPadAxis a, int64_t *pick, int64_t n);
void ref_take_tile(int64_t dim, int64_t *pick, int64_t n);

// Reverses the first lens[b] of every sequence; fails on a length outside [0, time].
MUST_USE Err ref_reverse(const Tensor *x, const Tensor *lens, bool batch_first, Tensor *y);

// Make: tensors that follow a rule instead of data.

void ref_fill(const void *element, Tensor *y);  // the same element everywhere
void ref_eye(int64_t k, Tensor *y);             // ones on diagonal k; y is zero
void ref_range(const Tensor *start, const Tensor *delta, Tensor *y);
void ref_triangle(const Tensor *x, bool upper, int64_t k, Tensor *y);  // the rest stays zero

// values[1] where the index says so, values[0] elsewhere; y is outer x depth x inner.
typedef struct RefOneHot {
    int64_t outer, depth, inner;
    bool    from_end;  // negative indices count from the end
} RefOneHot;
void ref_one_hot(const RefOneHot *h, const Tensor *indices, const Tensor *values, Tensor *y);
