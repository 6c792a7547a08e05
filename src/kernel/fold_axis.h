// FoldAxis: many numbers into one along an axis: sums, means, extremes.
#pragma once

#include <stddef.h>

#include "kernel/isa.h"

typedef enum FoldOp {
    FOLD_SUM,
    FOLD_MEAN,
    FOLD_MAX,
    FOLD_MIN,
    FOLD_PROD,
    FOLD_SUM_SQUARE,
    FOLD_L1,
    FOLD_L2,
    FOLD_LOG_SUM,
    FOLD_LOG_SUM_EXP,
    FOLD_OPS
} FoldOp;

// x is [outer][n][inner], y is [outer][inner]. A blocked tensor folds over its pixels with
// outer = images * blocks and inner = lanes.
typedef struct FoldAxis {
    FoldOp op;
    size_t outer, n, inner;
} FoldAxis;

enum { FOLD_VECS = 8 };  // vectors of inner that a task takes

uint32_t fold_axis_tasks(const FoldAxis *f, const Isa *isa);  // isa->fold_axis(f, x, y, part)
