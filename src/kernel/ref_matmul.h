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
