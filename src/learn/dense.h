// Dense: a fully connected layer, y [rows][out] = x [rows][in] W [in][out] + b [out]. Parameters:
// W, then b.
#pragma once

#include "base/rng.h"
#include "learn/mat.h"

typedef struct Dense {
    uint32_t in, out;
} Dense;

static inline size_t dense_params(Dense d) { return ((size_t)d.in + 1) * d.out; }

void dense_init(Dense d, float *w, float gain, Rng *rng);  // W uniform, variance gain^2 / in; b 0

void dense_forward(Dense d, const float *w, size_t rows, Mat x, MatOut y);

// gw += gradients, unless NULL; dx = gradients of x, unless its `at` is NULL.
void dense_backward(Dense d, const float *w, float *gw, size_t rows, Mat x, Mat dy, MatOut dx);
