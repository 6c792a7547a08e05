// Reference data movement: strided copies, takes (pad, tile), reversal, and constant tensors.
#pragma once

#include "base/tensor.h"

// One side of a copy: first element and stride of each dimension, in elements.
typedef struct RefStrided {
    void   *data;
    int64_t start;
    int64_t stride[TENSOR_MAX_RANK];
} RefStrided;

RefStrided ref_strided(const Tensor *t);  // all of t, row-major

// Copies dims[rank] elements of size bytes. The sides must not overlap.
void ref_copy(int32_t rank, const int64_t *dims, size_t size, RefStrided to, RefStrided from);

// y[i, j, ...] = x[pick[0][i], pick[1][j], ...]; *fill if any pick is negative. Ranks are equal.
void ref_take(const Tensor *x, int64_t *const *pick, const void *fill, Tensor *y);

typedef enum RefPad { REF_PAD_CONSTANT, REF_PAD_EDGE, REF_PAD_REFLECT, REF_PAD_WRAP } RefPad;

// Picks of one padded axis of length n: `begin` padding elements, then `kept` input elements from
// `drop` on, then padding.
typedef struct RefPadAxis {
    int64_t begin, drop, kept;
} RefPadAxis;
void ref_take_pad(RefPad mode, RefPadAxis a, int64_t *pick, int64_t n);
void ref_take_tile(int64_t dim, int64_t *pick, int64_t n);

// Reverses the first lens[b] steps of sequence b; fails on a length outside [0, time].
MUST_USE Err ref_reverse(const Tensor *x, const Tensor *lens, bool batch_first, Tensor *y);

void ref_fill(const void *element, Tensor *y);  // the same element everywhere
void ref_eye(int64_t k, Tensor *y);             // writes ones on diagonal k; y is zeroed
void ref_range(const Tensor *start, const Tensor *delta, Tensor *y);
void ref_triangle(const Tensor *x, bool upper, int64_t k,
                  Tensor *y);  // y is zeroed; copies the triangle

// values[1] at the index, values[0] elsewhere; y is [outer, depth, inner].
typedef struct RefOneHot {
    int64_t outer, depth, inner;
    bool    from_end;  // negative indices count from the end
} RefOneHot;
void ref_one_hot(const RefOneHot *h, const Tensor *indices, const Tensor *values, Tensor *y);
