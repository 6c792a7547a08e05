// Compare: whether a computed value equals the expected one within ONNX's tolerances.
#pragma once

#include "base/tensor.h"

typedef struct Tolerance {
    double relative, absolute;  // |got - want| <= absolute + relative * |want|
} Tolerance;

// Fails with the first difference: type, shape, or index and both numbers.
MUST_USE Err compare_values(const Tensor *got, const Tensor *want, Tolerance t);
