// Matmul: products of stacks of matrices; the slow, obvious truth.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

typedef struct RefMatMul {
    bool          trans_a, trans_b;
    const Tensor *a_zero;  // subtracted: broadcasts to [..., M, 1] of a's stack; or NULL
    const Tensor *b_zero;  // subtracted: broadcasts to [..., 1, N] of b's stack; or NULL
} RefMatMul;

// a [..., M, K], b [..., K, N] (or transposed), y [..., M, N]; the stacks broadcast. Integers of 32
// and 64 bits wrap; everything else adds up in double.
MUST_USE Err ref_matmul(const RefMatMul *p, const Tensor *a, const Tensor *b, Tensor *y,
                        Arena *scratch);

// y = alpha * ab + beta * c, where c (or NULL) broadcasts to y and ab has y's shape.
void ref_gemm_add(double alpha, const Tensor *ab, double beta, const Tensor *c, Tensor *y);

// Einsum: a sum of products over any loops; the slow, obvious truth.

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

// Det: determinants of square matrices; the slow, obvious truth.

// The last two dimensions of x are the matrices. room holds one as double.
void ref_det(const Tensor *x, Tensor *y, double *room);
