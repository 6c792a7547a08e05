// Reproducible matrix products: terms are added in order, so that every machine gives the same
// bits.
#pragma once

#include "learn/mat.h"

typedef struct GemmView {  // element (i, j) is at[i * row + j * col]; row or col is 1
    const float *at;
    size_t       row, col;
} GemmView;

// c [m][n] += a [m][k] b [k][n].
void repro_gemm(size_t m, size_t n, size_t k, GemmView a, GemmView b, MatOut c);

// y [out] += x [in] w [in][out]; the same bits as a row of repro_gemm.
void repro_gemv(size_t out, size_t in, const float *x, const float *w, float *y);
