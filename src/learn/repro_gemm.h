// Plain: products of matrices that add from the first term to the last, on every machine.
#pragma once

#include "learn/mat.h"

typedef struct GemmView {  // element (i, j) is at[i * row + j * col]; row or col is 1
    const float *at;
    size_t       row, col;
} GemmView;

// c [m][n] += a [m][k] b [k][n]: for many rows.
void repro_gemm(size_t m, size_t n, size_t k, GemmView a, GemmView b, MatOut c);

// y [out] += x [in] w [in][out]: for one. The same bits as a row of the above.
void repro_gemv(size_t out, size_t in, const float *x, const float *w, float *y);
