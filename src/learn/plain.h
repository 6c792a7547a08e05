// Plain: products of matrices that add from the first term to the last, on every machine.
#pragma once

#include "learn/mat.h"

typedef struct PlainView {  // element (i, j) is at[i * row + j * col]; row or col is 1
    const float *at;
    size_t       row, col;
} PlainView;

// c [m][n] += a [m][k] b [k][n]: for many rows.
void plain_product(size_t m, size_t n, size_t k, PlainView a, PlainView b, MatOut c);

// y [out] += x [in] w [in][out]: for one. The same bits as a row of the above.
void plain_row(size_t out, size_t in, const float *x, const float *w, float *y);
