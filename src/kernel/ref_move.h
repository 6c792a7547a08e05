// Move: copies elements of any size between layouts; the slow, obvious truth of every reordering.
#pragma once

#include "base/tensor.h"

// One side of a copy: the first element and the step in each dimension, counted in elements.
typedef struct RefSide {
    void   *data;
    int64_t start;
    int64_t stride[TENSOR_MAX_RANK];
} RefSide;

RefSide ref_side(const Tensor *t);  // all of t, row by row

// Copies dims[rank] elements of size bytes. The sides must not overlap.
void ref_move(int32_t rank, const int64_t *dims, size_t size, RefSide to, RefSide from);

// y[i, j, ...] = x[pick[0][i], pick[1][j], ...]; *fill where a pick is negative. Ranks are equal.
void ref_pick(const Tensor *x, int64_t *const *pick, const void *fill, Tensor *y);

typedef enum RefPad { REF_PAD_CONSTANT, REF_PAD_EDGE, REF_PAD_REFLECT, REF_PAD_WRAP } RefPad;

// The pick of one padded axis of n: kept elements from drop on stay, begin before them are new.
typedef struct RefPadAxis {
    int64_t begin, drop, kept;
} RefPadAxis;
void ref_pick_pad(RefPad mode, RefPadAxis a, int64_t *pick, int64_t n);
void ref_pick_tile(int64_t dim, int64_t *pick, int64_t n);

// Reverses the first lens[b] of every sequence; fails on a length outside [0, time].
MUST_USE Err ref_reverse(const Tensor *x, const Tensor *lens, bool batch_first, Tensor *y);
