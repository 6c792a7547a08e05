// Unary: one function applied to every element; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

typedef enum RefUnary {
#define X(id, expr) REF_##id,
#include "kernel/ref_unary.def"
#undef X
    REF_BIT_NOT,  // integers
    REF_NOT,      // bool
    REF_UNARY_COUNT
} RefUnary;

// x and y have one type and shape; a and b are the function's parameters. Integers: ABS, NEG,
// SIGN, RELU and BIT_NOT are exact and wrap; all else goes through double and saturates.
void ref_unary(RefUnary f, float a, float b, const Tensor *x, Tensor *y);

void ref_is_nan(const Tensor *x, Tensor *y);  // any float to bool
void ref_is_inf(bool negative, bool positive, const Tensor *x, Tensor *y);
