// Einsum: a sum of products over any loops; the slow, obvious truth.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

enum { REF_EINSUM_LOOPS = 16, REF_EINSUM_OPERANDS = 16 };

// The first n_out loops make y in row-major order, the rest are summed over.
typedef struct RefEinsum {
    int32_t       n, n_out;
    uint32_t      operands;
    int64_t       dims[REF_EINSUM_LOOPS];
    const Tensor *operand[REF_EINSUM_OPERANDS];
    int64_t       stride[REF_EINSUM_OPERANDS][REF_EINSUM_LOOPS];
} RefEinsum;

// Floats add up in double; integers wrap.
MUST_USE Err ref_einsum(const RefEinsum *p, Tensor *y, Arena *scratch);
