// Sort: the largest or smallest elements along an axis, with where they stood.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

// values and indices have k along the axis. Equal elements keep their order; not-a-number counts
// as larger than every number. indices may be NULL. Fails when scratch is full.
MUST_USE Err ref_topk(const Tensor *x, int32_t axis, bool largest, Arena *scratch, Tensor *values,
                      Tensor *indices);
