// Panel: k rows of PANEL doubles, the right side of a product; one left row at a time meets it.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/tensor.h"

enum { PANEL = 16 };

// acc[j] += sum over i in [0, k) of row[i] * panel[i][j].
void panel_dot(const double *restrict panel, const double *restrict row, int64_t k,
               double acc[restrict PANEL]);

// Room for k rows of width numbers each; reports an amount that does not fit.
MUST_USE Err ref_alloc_doubles(Arena *a, int64_t k, int64_t width, double **out);

// Gather at: an index from the outside, checked against the dimension it points into.

// Element i of int32 or int64 indices; negative counts from the end of dim.
MUST_USE Err ref_index_at(const Tensor *indices, int64_t i, int64_t dim, int64_t *at);

// Tuple i of indices whose last dimension holds tuples: the element where x[tuple] starts.
// dims and stride begin at the dimension the tuple's first part points into.
MUST_USE Err ref_index_tuple(const Tensor *indices, int64_t i, const int64_t *dims,
                             const int64_t *stride, int64_t *at);
