// Reference element-wise operators: unary (ref_unary.c), binary and select (ref_binary.c).
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

// x and y have the same type and shape; a and b are parameters of f. On integers ABS, NEG, SIGN,
// RELU and BIT_NOT are exact and wrap; other functions compute in double and saturate.
void ref_unary(RefUnary f, float a, float b, const Tensor *x, Tensor *y);

void ref_is_nan(const Tensor *x, Tensor *y);  // any float to bool
void ref_is_inf(bool negative, bool positive, const Tensor *x, Tensor *y);

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

// a and b have the same type (except for POW, where y has the type of a) and broadcast to y, which
// may be a. Integers wrap; x / 0 and x % 0 are 0; a shift past the width gives 0.
void ref_binary(RefBinary f, const Tensor *a, const Tensor *b, Tensor *y);

void ref_equal_str(const Tensor *a, const Tensor *b, Tensor *y);

// y = condition ? a : b. All three broadcast to y; a, b and y have the same type, of any kind.
void ref_where(const Tensor *condition, const Tensor *a, const Tensor *b, Tensor *y);
