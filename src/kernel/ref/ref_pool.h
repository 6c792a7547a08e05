// Reference max, average and Lp pooling, and max unpooling.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"
#include "kernel/ref/ref_conv.h"

typedef enum RefPoolKind { REF_POOL_MAX, REF_POOL_AVERAGE, REF_POOL_LP } RefPoolKind;

typedef struct RefPool {
    RefPoolKind kind;
    RefWindow   window;
    double      p;             // the norm of REF_POOL_LP
    bool        count_pad;     // averages count padding as zeros
    bool        column_major;  // order of the indices within a channel
} RefPool;

// x [N, C, in...], y [N, C, out...]; indices (as y, may be NULL): position of each
// maximum in x.
MUST_USE Err ref_pool(const RefPool *p, const Tensor *x, Tensor *y, Tensor *indices,
                      Arena *scratch);

// Element i of x goes to index indices[i] of a tensor [N, C, dims...]; y is its leading corner and
// starts as zeros. Fails on an index outside y.
MUST_USE Err ref_unpool(const Tensor *x, const Tensor *indices, const int64_t *dims, Tensor *y);
