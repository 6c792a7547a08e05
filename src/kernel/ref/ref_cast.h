// Cast: every element as another type; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// Numbers and bool into numbers and bool, by the rules of wide_store.
void ref_cast(const Tensor *x, Tensor *y);

enum { REF_CAST_TEXT = 40 };  // bytes that hold any number's text

// Element i as text: the shortest one that reads back as the same number. Returns its length.
size_t ref_cast_print(const Tensor *x, int64_t i, char text[REF_CAST_TEXT]);

// Reads element i of y from text: a decimal number, "NaN" or "INF" in any case. Fails on all else.
MUST_USE Err ref_cast_read(Str text, Tensor *y, int64_t i);

// Quant: integers that stand for (q - zero) * scale; the slow, obvious truth.

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
