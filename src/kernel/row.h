// Row: a strided run of numbers of any type, read and written as doubles.
#pragma once

#include <stdint.h>

#include "base/tensor.h"

// out[i] = t[at + i * step] for i in [0, n). Integers above 2^53 are rounded.
void row_load(const Tensor *t, int64_t at, int64_t step, int64_t n, double *out);

// The reverse. Integers are cut towards zero and kept in their type's range; NaN becomes 0.
void row_store(Tensor *t, int64_t at, int64_t step, int64_t n, const double *in);
