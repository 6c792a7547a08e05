// Pool: max and average pooling over plain or blocked tensors.
#pragma once

#include <stdbool.h>

#include "kernel/conv.h"
#include "kernel/isa.h"

typedef enum PoolKind { POOL_MAX, POOL_AVERAGE } PoolKind;

// Arguments of isa->pool(&pool, part). A window as large as the input is global pooling. Taps
// outside the input are ignored, except that an average with count_pad counts padding (but not the
// overhang of a window beyond the padding). A maximum propagates NaN.
typedef struct Pool {
    ConvShape    shape;   // oc == ic; groups is not read
    uint32_t     planes;  // images per channel, pooled one by one: of a volume; 0 is 1
    uint32_t     pb, pr;  // padding at the bottom and right
    PoolKind     kind;
    bool         count_pad;
    bool         plain;  // x and y are [n][c][h][w]; else both are blocked
    const float *x;
    float       *y;
} Pool;

uint32_t pool_tasks(const Pool *p, const Isa *isa);
size_t   pool_scratch(const Pool *p, const Isa *isa);

// Output rows per task; input columns, padding included, under the windows of one output row.
uint32_t pool_rows(const Pool *p, uint32_t lanes);
uint32_t pool_width(const Pool *p);
