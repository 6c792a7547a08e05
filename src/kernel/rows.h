// Rows: operands broadcast to one shape, cut into rows in which each is contiguous or constant.
#pragma once

#include "kernel/walk.h"

// for (Walk w = r.walk; walk_more(&w); walk_next(&w)): row w.at starts at w.at * n in the result
// and at w.off[k] in operand k, which advances by step[k] (0 or 1).
typedef struct Rows {
    Walk    walk;
    int64_t n;  // elements of a row
    int64_t step[WALK_MAX];
} Rows;

Rows rows_of(const Tensor *out, const Tensor *const *in, int32_t n_in);
