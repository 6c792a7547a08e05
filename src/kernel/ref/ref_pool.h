// Pool: a window reduced to one number; and its inverse. The slow, obvious truth.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"
#include "kernel/ref/ref_conv.h"

typedef enum RefPoolKind { REF_POOL_MAX, REF_POOL_AVERAGE, REF_POOL_LP } RefPoolKind;

typedef struct RefPool {
    RefPoolKind kind;
    RefWindow   window;
    double      p;             // the norm of REF_POOL_LP
    bool        count_pad;     // an average counts padding as zeros
    bool        column_major;  // the order of indices inside an image's channel
} RefPool;

// x [N, C, in...], y [N, C, out...]; indices like y or NULL: where in x each maximum was found.
MUST_USE Err ref_pool(const RefPool *p, const Tensor *x, Tensor *y, Tensor *indices,
                      Arena *scratch);

// Element i of x goes to index indices[i] of an [N, C, dims...], whose corner y is (or which is
// y's). Fails on an index outside. y starts as zeros.
MUST_USE Err ref_unpool(const Tensor *x, const Tensor *indices, const int64_t *dims, Tensor *y);
