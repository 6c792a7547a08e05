// Cumsum: running sums along a dimension; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// Running sums along one dimension; exclusive ones leave out the element itself.
void ref_cumsum(bool exclusive, bool reverse, int32_t axis, const Tensor *x, Tensor *y);
