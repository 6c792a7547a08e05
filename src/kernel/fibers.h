// Fibers: a tensor as sets of elements along chosen dimensions, each visited in strided runs.
#pragma once

#include "kernel/walk.h"

// for (Walk k = f.kept; walk_more(&k); walk_next(&k))         one fiber, number k.at
//     for (Walk r = f.runs; walk_more(&r); walk_next(&r))     n elements from k.off[0] + r.off[0]
//     on,
//                                                             stride apart
typedef struct Fibers {
    Walk    kept, runs;
    int64_t n, stride;
    int64_t length;  // elements of a fiber
} Fibers;

Fibers fibers_of(const Tensor *x, const bool along[TENSOR_MAX_RANK]);
