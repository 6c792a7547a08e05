// Gather at: an index from the outside, checked against the dimension it points into.
#pragma once

#include "base/tensor.h"

// Element i of int32 or int64 indices; negative counts from the end of dim.
MUST_USE Err ref_gather_at(const Tensor *indices, int64_t i, int64_t dim, int64_t *at);

// Tuple i of indices whose last dimension holds tuples: the element where x[tuple] starts.
// dims and stride begin at the dimension the tuple's first part points into.
MUST_USE Err ref_gather_tuple(const Tensor *indices, int64_t i, const int64_t *dims,
                              const int64_t *stride, int64_t *at);
