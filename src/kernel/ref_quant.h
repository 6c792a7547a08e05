// Quant: integers that stand for (q - zero) * scale; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// y = sum * a_scale * b_scale / y_scale + y_zero, rounded half to even and saturated. The last
// four broadcast to y; sum has y's shape.
void ref_requantize(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *y_scale, const Tensor *y_zero, Tensor *y);
