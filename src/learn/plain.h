// Plain: products of matrices that add in one order on every machine: from the first term to the
// last.
#pragma once

#include "learn/mat.h"

// y [rows][out] = x [rows][in] w [in][out], added to `start` [out], or to what y holds when that is
// NULL. Quick for one row too.
void plain_mul(size_t rows, size_t out, size_t in, Mat x, const float *w, const float *start,
               MatOut y);

typedef struct PlainView {  // element (i, j) is at[i * row + j * col]
    const float *at;
    size_t       row, col;
} PlainView;

// c [m][n] += a [m][k] b [k][n]: for many rows.
void plain_product(size_t m, size_t n, size_t k, PlainView a, PlainView b, MatOut c);
