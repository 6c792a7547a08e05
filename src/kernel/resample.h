// Resample: resizes the height and width of tensors by tables of which inputs make an output.
#pragma once

#include <stdbool.h>

#include "kernel/isa.h"
#include "kernel/ref/ref_resize.h"

// Output i of an axis is the weighted sum of two inputs; a nearest one is the first alone.
typedef struct ResampleTap {
    uint32_t at[2];
    float    weight[2];
} ResampleTap;

typedef struct Resample {
    uint32_t           n, c, ih, iw, oh, ow;
    bool               nearest;
    bool               plain;           // both sides [n][c][h][w]; otherwise both blocked
    const ResampleTap *rows, *columns;  // [oh], [ow]
    const float       *x;
    float             *y;
} Resample;

// Fills taps[out] for dimension d. False when two taps cannot say it: cubic, antialiased, or an
// output outside the region; the reference computes those.
bool resample_axis(const RefResize *p, int32_t d, int64_t in, int64_t out, ResampleTap *taps);

// Whether dimension d of size n stays as it is, as batch and channels must for this kernel. Odd
// pairs of coordinates and rounding move even a dimension that keeps its size.
bool resample_keeps(const RefResize *p, int32_t d, int64_t n);

// Vector kernel: isa->resample(resample, part).
uint32_t resample_tasks(const Resample *r, const Isa *isa);
size_t   resample_scratch(const Resample *r, const Isa *isa);
uint32_t resample_rows(const Resample *r, uint32_t lanes);  // output rows of a task
