// VecRowwise: softmax and norms where each lane of a vector is a set of its
// own.
#pragma once

#include "kernel/rowwise.h"
#include "kernel/vec.h"

// Sets `place` and following of row `row`, as many as a task takes.
void VEC(places)(const Rowwise *r, const RowwiseData *d, size_t row, size_t place);

// Softmax of VEC_LANES sets: number i of them is the vector x[i].
void VEC(places_softmax)(RowOp op, Vf *x, size_t n);
