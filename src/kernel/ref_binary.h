// Binary: one function of two elements over two tensors that broadcast; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

typedef enum RefBinary {
#define N(id, real, sint, uint) REF_##id,
#define B(id, expr)             REF_##id,
#define C(id, expr)             REF_##id,
#include "kernel/ref_binary.def"
#undef N
#undef B
#undef C
    REF_BINARY_COUNT
} RefBinary;

// a and b have one type (of POW they may differ, y has that of a) and broadcast to the shape of y,
// which may be a itself. Integers wrap; x / 0 and x % 0 are 0; a shift past the width gives 0.
void ref_binary(RefBinary f, const Tensor *a, const Tensor *b, Tensor *y);

void ref_equal_str(const Tensor *a, const Tensor *b, Tensor *y);
