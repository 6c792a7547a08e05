// Where: picks every element from one of two tensors; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// All three broadcast to the shape of y; a, b and y have one type, whichever.
void ref_where(const Tensor *condition, const Tensor *a, const Tensor *b, Tensor *y);
