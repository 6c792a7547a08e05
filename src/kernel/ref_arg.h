// Arg: where the largest or smallest element lies; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// Index (int64) of the largest or smallest element along one dimension, which is not empty; the
// first of equals or the last. Not-a-number counts as the extreme.
void ref_arg(bool largest, bool last, int32_t axis, const Tensor *x, Tensor *y);
