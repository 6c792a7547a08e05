// Reference matrix products: batched matmul, einsum, determinant.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

typedef struct RefMatMul {
    bool          trans_a, trans_b;
    const Tensor *a_zero;  // zero point, broadcasts to [..., M, 1]; may be NULL
    const Tensor *b_zero;  // zero point, broadcasts to [..., 1, N]; may be NULL
} RefMatMul;

// a [..., M, K], b [..., K, N] (or transposed), y [..., M, N]; batches broadcast. 32- and
// 64-bit integers wrap; everything else accumulates in double.
MUST_USE Err ref_matmul(const RefMatMul *p, const Tensor *a, const Tensor *b, Tensor *y,
                        Arena *scratch);

// y = alpha * ab + beta * c; c broadcasts to y and may be NULL.
void ref_gemm_add(double alpha, const Tensor *ab, double beta, const Tensor *c, Tensor *y);

enum { REF_EINSUM_LOOPS = 16, REF_EINSUM_OPERANDS = 16 };

// The first n_out loops index y in row-major order; the others are summed over.
typedef struct RefEinsum {
    int32_t       n, n_out;
    uint32_t      operands;
    int64_t       dims[REF_EINSUM_LOOPS];
    const Tensor *operand[REF_EINSUM_OPERANDS];
    int64_t       stride[REF_EINSUM_OPERANDS][REF_EINSUM_LOOPS];
} RefEinsum;

// Floats accumulate in double; integers wrap.
MUST_USE Err ref_einsum(const RefEinsum *p, Tensor *y, Arena *scratch);

// Determinants of the matrices in the last two dimensions of x. scratch holds one matrix.
void ref_det(const Tensor *x, Tensor *y, double *scratch);
