// Quant: integers that stand for (q - zero) * scale; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// y = sum * a_scale * b_scale / y_scale + y_zero, rounded half to even and saturated. The last
// four broadcast to y; sum has y's shape.
void ref_requantize(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *y_scale, const Tensor *y_zero, Tensor *y);

// x as [outer, axis, inner]. block 0: scale and zero are one number; -1: one per index of axis;
// else they are [outer, blocks of axis, inner]. zero may be NULL.
typedef struct RefQuant {
    int64_t       outer, axis, inner, block;
    const Tensor *scale, *zero;
} RefQuant;

void ref_quantize(const RefQuant *p, const Tensor *x, Tensor *y);    // x / scale + zero, saturated
void ref_dequantize(const RefQuant *p, const Tensor *x, Tensor *y);  // (x - zero) * scale

// A float32 x to uint8 y with the scale and zero point that cover its range and 0.
void ref_quantize_dynamic(const Tensor *x, Tensor *y, float *scale, uint8_t *zero);

// y = sum * a_scale * b_scale + bias (or NULL). The last three broadcast to y.
void ref_scale_sums(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *bias, Tensor *y);
