// Pool: every window of a channel reduced to its maximum or average.
#pragma once

#include <stdbool.h>

#include "kernel/conv.h"
#include "kernel/isa.h"

typedef enum PoolKind { POOL_MAX, POOL_AVERAGE } PoolKind;

// A window over the whole input is global pooling. Taps outside count for nothing, except that
// an average with count_pad counts padding, though never what hangs over it.
typedef struct Pool {
    ConvShape    shape;   // oc == ic; groups does not matter
    uint32_t     pb, pr;  // padding below and on the right
    PoolKind     kind;
    bool         count_pad;
    bool         plain;  // both sides [n][c][h][w]; otherwise both blocked
    const float *x;
    float       *y;
} Pool;

// Vector kernel: isa->pool(pool, part). A maximum keeps NaNs.
uint32_t pool_tasks(const Pool *p, const Isa *isa);
size_t   pool_scratch(const Pool *p, const Isa *isa);

// Output rows of a task; columns of the input, padding included, that the windows of a row meet.
uint32_t pool_rows(const Pool *p, uint32_t lanes);
uint32_t pool_width(const Pool *p);
