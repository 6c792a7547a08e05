// Unary: one function applied to every element; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

typedef enum RefUnary { REF_RELU, REF_UNARY_COUNT } RefUnary;

void ref_unary(RefUnary f, const Tensor *x, Tensor *y);
