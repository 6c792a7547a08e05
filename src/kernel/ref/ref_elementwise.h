// Unary: one function applied to every element; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

typedef enum RefUnary {
#define X(id, expr) REF_##id,
#include "kernel/ref/ref_unary.def"
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

// Binary: one function of two elements over two tensors that broadcast; the slow, obvious truth.

typedef enum RefBinary {
#define N(id, real, sint, uint) REF_##id,
#define B(id, expr)             REF_##id,
#define C(id, expr)             REF_##id,
#include "kernel/ref/ref_binary.def"
#undef N
#undef B
#undef C
    REF_BINARY_COUNT
} RefBinary;

// a and b have one type (of POW they may differ, y has that of a) and broadcast to the shape of y,
// which may be a itself. Integers wrap; x / 0 and x % 0 are 0; a shift past the width gives 0.
void ref_binary(RefBinary f, const Tensor *a, const Tensor *b, Tensor *y);

void ref_equal_str(const Tensor *a, const Tensor *b, Tensor *y);

// Where: picks every element from one of two tensors; the slow, obvious truth.

// All three broadcast to the shape of y; a, b and y have one type, whichever.
void ref_where(const Tensor *condition, const Tensor *a, const Tensor *b, Tensor *y);
