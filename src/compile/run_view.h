// View: a tensor's numbers under another shape, and room for as many of another type.
#pragma once

#include "model/op.h"

// A list [n] as [n, 1, ...] with that many ones behind; one number as a scalar; others unchanged.
Tensor run_column(const Tensor *t, int32_t ones);

Tensor run_matrix(const Tensor *t, bool left);  // a vector as a row (left) or a column matrix

// Zeroed room of a type in the call's scratch, shaped like t.
MUST_USE Err run_room(const OpCall *c, const Tensor *t, DType type, Tensor *out);
MUST_USE Err run_wide(const OpCall *c, const Tensor *t, Tensor *out);  // of float64
