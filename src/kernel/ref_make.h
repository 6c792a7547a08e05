// Make: tensors that follow a rule instead of data.
#pragma once

#include "base/tensor.h"

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
