// Helpers shared by the reference kernels; the code of panels is in ref_matmul.c.
#pragma once

#include <stdint.h>

#include "base/arena.h"

static inline int64_t ref_product(const int64_t *dims, int32_t n) {
    int64_t p = 1;
    for (int32_t i = 0; i < n; i++) p *= dims[i];
    return p;
}

enum { PANEL = 16 };

// A panel is the right operand of a product: k rows of PANEL doubles.
// acc[j] += sum over i in [0, k) of row[i] * panel[i][j].
void panel_dot(const double *restrict panel, const double *restrict row, int64_t k,
               double acc[restrict PANEL]);

// Allocates rows * width doubles; ERR_LIMIT if they do not fit the arena.
MUST_USE Err ref_alloc_doubles(Arena *a, int64_t rows, int64_t width, double **out);
