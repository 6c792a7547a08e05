// Reference casts between element types, to and from text, and quantisation.
#pragma once

#include "base/tensor.h"

// Numeric types and bool, converted as wide_store does.
void ref_cast(const Tensor *x, Tensor *y);

enum { REF_CAST_TEXT = 40 };  // buffer size for the text of any number

// Element i as the shortest text that reads back as the same number. Returns its length.
size_t ref_cast_print(const Tensor *x, int64_t i, char text[REF_CAST_TEXT]);

// Parses element i of y: a decimal number, "NaN" or "INF" in any case; fails otherwise.
MUST_USE Err ref_cast_read(Str text, Tensor *y, int64_t i);

// Quantised values q stand for (q - zero) * scale.

// y = sum * a_scale * b_scale / y_scale + y_zero, rounded half to even and saturated.
// Scales and zero point broadcast to y; sum has y's shape.
void ref_requantize(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *y_scale, const Tensor *y_zero, Tensor *y);

// x is [outer, axis, inner]. block 0: scale and zero are scalars; -1: one per index of axis; else
// they are [outer, blocks of axis, inner]. zero may be NULL.
typedef struct RefQuant {
    int64_t       outer, axis, inner, block;
    const Tensor *scale, *zero;
} RefQuant;

void ref_quantize(const RefQuant *p, const Tensor *x, Tensor *y);    // x / scale + zero, saturated
void ref_dequantize(const RefQuant *p, const Tensor *x, Tensor *y);  // (x - zero) * scale

// Quantises float32 x to uint8 y; scale and zero point cover the range of x and 0.
void ref_quantize_dynamic(const Tensor *x, Tensor *y, float *scale, uint8_t *zero);

// y = sum * a_scale * b_scale + bias; bias may be NULL. Scales and bias broadcast to y.
void ref_scale_sums(const Tensor *sum, const Tensor *a_scale, const Tensor *b_scale,
                    const Tensor *bias, Tensor *y);
