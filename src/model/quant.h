// Quant: checks of the scales and zero points that quantised operators take.
#pragma once

#include "base/tensor.h"

// One number, or a list of count. Zero points: of type; NULL (left out) is accepted.
MUST_USE Err quant_zero(const Tensor *t, DType type, int64_t count, const char *what);
MUST_USE Err quant_scale(const Tensor *t, int64_t count, const char *what);  // float32
