// Norm: layer norm: each row of x [rows][n] to mean 0 and variance 1, then y = gain x' + bias.
// Parameters: gain [n], then bias [n].
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Norm {
    uint32_t n;
} Norm;

static inline size_t norm_params(Norm l) { return 2 * (size_t)l.n; }
static inline size_t norm_cache_size(Norm l, size_t rows) { return rows * ((size_t)l.n + 1); }

void norm_init(Norm l, float *w);
void norm_forward(Norm l, const float *w, size_t rows, const float *x, float *y, float *cache);

// gw += gradients, unless NULL; dx is set, unless NULL. dy and dx may be the same.
void norm_backward(Norm l, const float *w, float *gw, size_t rows, const float *dy, float *dx,
                   const float *cache);
