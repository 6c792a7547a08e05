// Reference image sampling at fractional positions: grid sample, affine grid, RoI align and RoI max
// pool.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"
#include "kernel/ref/ref_conv.h"

typedef enum RefSampleMode {
    REF_SAMPLE_NEAREST,
    REF_SAMPLE_LINEAR,
    REF_SAMPLE_CUBIC
} RefSampleMode;

typedef enum RefSamplePadding {
    REF_SAMPLE_ZEROS,
    REF_SAMPLE_BORDER,
    REF_SAMPLE_REFLECTION,
} RefSamplePadding;

// Pixels and weights of a fractional position along one dimension; at -1 reads as zero.
typedef struct RefTaps {
    int32_t n;
    int64_t at[4];
    double  weight[4];
} RefTaps;

// Linear taps of position x (any double, also NaN) between pixels [0, size), zeros outside.
RefTaps ref_sample_linear(double x, int64_t size);

// Weighted sum of the pixels of a plane over the taps of each dimension.
double ref_sample_sum(const Tensor *x, int64_t plane, int32_t rank, const int64_t *dims,
                      const RefTaps *taps);

typedef struct RefGridSample {
    RefSampleMode    mode;
    RefSamplePadding padding;
    bool             align_corners;
} RefGridSample;

// x [N, C, in...], grid [N, out..., r] of positions in [-1, 1], last dimension first, y [N, C,
// out...].
void ref_grid_sample(const RefGridSample *p, const Tensor *x, const Tensor *grid, Tensor *y);

// theta [N, r, r + 1], y [N, size..., r]: each position of an image, transformed by theta.
void ref_affine_grid(bool align_corners, const Tensor *theta, Tensor *y);

typedef struct RefRoiAlign {
    bool    max, half_pixel;
    int64_t sampling;  // points per bin and dimension; 0: one per pixel of the bin
    double  scale;
} RefRoiAlign;

// x [N, C, H, W], rois [R, 4] of x1, y1, x2, y2, images [R], y [R, C, h, w]. Fails on an image
// outside x and on regions that are not finite or need too many points.
MUST_USE Err ref_roi_align(const RefRoiAlign *p, const Tensor *x, const Tensor *rois,
                           const Tensor *images, Tensor *y);

// rois [R, 5] of image, x1, y1, x2, y2; y [R, C, h, w]. Fails on an image outside x [N, C, H, W].
MUST_USE Err ref_roi_max(double scale, const Tensor *x, const Tensor *rois, Tensor *y);
