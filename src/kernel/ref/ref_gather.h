// Gather: reads and writes elements by index. An index outside its dimension is an error.
#pragma once

#include "base/tensor.h"

// y has the dimensions of x with the axis replaced by those of the indices.
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

// y holds a copy of the data; the updates go into it in their order.
MUST_USE Err ref_scatter_elements(RefScatter how, const Tensor *indices, const Tensor *updates,
                                  int32_t axis, Tensor *y);
MUST_USE Err ref_scatter_nd(RefScatter how, const Tensor *indices, const Tensor *updates,
                            Tensor *y);
