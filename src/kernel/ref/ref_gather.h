// Reference gather and scatter. Indices are int32 or int64, negative ones count from the end; an
// index outside its dimension is an error.
#pragma once

#include "base/tensor.h"

// The shape of y is that of x with the axis replaced by the shape of the indices.
MUST_USE Err ref_gather(const Tensor *x, const Tensor *indices, int32_t axis, Tensor *y);
MUST_USE Err ref_gather_elements(const Tensor *x, const Tensor *indices, int32_t axis, Tensor *y);
MUST_USE Err ref_gather_nd(const Tensor *x, const Tensor *indices, int32_t batch, Tensor *y);

typedef enum RefScatter {
    REF_SCATTER_SET,
    REF_SCATTER_ADD,
    REF_SCATTER_MUL,
    REF_SCATTER_MAX,
    REF_SCATTER_MIN
} RefScatter;

// y holds a copy of the data; updates are applied in order.
MUST_USE Err ref_scatter_elements(RefScatter how, const Tensor *indices, const Tensor *updates,
                                  int32_t axis, Tensor *y);
MUST_USE Err ref_scatter_nd(RefScatter how, const Tensor *indices, const Tensor *updates,
                            Tensor *y);
