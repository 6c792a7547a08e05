// Dropout: zeroes a random share of the elements and scales the rest; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

// Drops with probability ratio in [0, 1). The mask (bool or the type of x; may be NULL) says what
// stayed. Seeded draws equal those of ONNX's reference.
void ref_dropout(double ratio, uint32_t seed, const Tensor *x, Tensor *y, Tensor *mask);
