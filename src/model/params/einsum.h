// Einsum: an equation over the operands' shapes, as nested loops with a stride per operand.
#pragma once

#include "model/op.h"

enum { EINSUM_LABELS = 16, EINSUM_OPERANDS = 16 };

// Loops over dims[0..n): the first n_out are the output's dimensions, the rest are summed over.
typedef struct Einsum {
    int32_t  n, n_out;
    uint32_t operands;
    int64_t  dims[EINSUM_LABELS];
    int32_t  at[EINSUM_OPERANDS][TENSOR_MAX_RANK];  // the loop of each dimension of each operand
} Einsum;

MUST_USE Err einsum_read(const OpCall *c, Einsum *out);

// Element strides of an operand per loop; 0 where it is broadcast or absent. t has passed
// tensor_measure.
void einsum_strides(const Einsum *e, uint32_t operand, const Tensor *t, int64_t *stride);
