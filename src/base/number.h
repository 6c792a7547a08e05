// Number: one element of a tensor of any numeric type (or bool), read and written without
// surprises.
#pragma once

#include "base/tensor.h"

double  number_f64(const Tensor *t, int64_t i);
int64_t number_i64(const Tensor *t, int64_t i);  // truncates; saturates; not-a-number is 0

void number_set(Tensor *t, int64_t i, double v);  // rounds to the type; integers truncate, saturate

// A key that sorts as the number does, over the whole type: -0 equals 0, not-a-number comes last.
uint64_t number_key(const Tensor *t, int64_t i);
bool     number_is_zero(const Tensor *t, int64_t i);
