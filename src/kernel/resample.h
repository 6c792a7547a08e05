// Resample: nearest and linear resizing of height and width, by precomputed taps per output.
#pragma once

#include <stdbool.h>

#include "kernel/isa.h"
#include "kernel/ref/ref_resize.h"

// Output i of an axis is the weighted sum of two inputs; nearest uses only the first.
typedef struct ResampleTap {
    uint32_t at[2];
    float    weight[2];
} ResampleTap;

typedef struct Resample {
    uint32_t           n, c, ih, iw, oh, ow;
    bool               nearest;
    bool               plain;           // x and y are [n][c][h][w]; else both are blocked
    const ResampleTap *rows, *columns;  // [oh], [ow]
    const float       *x;
    float             *y;
} Resample;

// Fills taps[out] for dimension d. False if two taps are not enough (cubic, antialiased) or an
// output lies outside the region; those cases run on the reference kernel.
bool resample_axis(const RefResize *p, int32_t d, int64_t in, int64_t out, ResampleTap *taps);

// Whether resizing dimension d of size n to the same size is the identity, as this kernel requires
// of batch and channels. Some coordinate and rounding modes shift a dimension of unchanged size.
bool resample_keeps(const RefResize *p, int32_t d, int64_t n);

// Vector kernel: isa->resample(&resample, part).
uint32_t resample_tasks(const Resample *r, const Isa *isa);
size_t   resample_scratch(const Resample *r, const Isa *isa);
uint32_t resample_rows(const Resample *r, uint32_t lanes);  // output rows per task
