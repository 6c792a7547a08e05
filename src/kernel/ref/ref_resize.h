// Resize: resampling along each dimension; the slow, obvious truth.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

typedef enum RefResizeMode {
    REF_RESIZE_NEAREST,
    REF_RESIZE_LINEAR,
    REF_RESIZE_CUBIC
} RefResizeMode;

typedef enum RefResizeCoordinate {
    REF_RESIZE_HALF_PIXEL,
    REF_RESIZE_HALF_PIXEL_SYMMETRIC,
    REF_RESIZE_PYTORCH_HALF_PIXEL,
    REF_RESIZE_ALIGN_CORNERS,
    REF_RESIZE_ASYMMETRIC,
    REF_RESIZE_TF_HALF_PIXEL_FOR_NN,
    REF_RESIZE_TF_CROP_AND_RESIZE,
} RefResizeCoordinate;

typedef enum RefResizeNearest {
    REF_RESIZE_ROUND_PREFER_FLOOR,
    REF_RESIZE_ROUND_PREFER_CEIL,
    REF_RESIZE_FLOOR,
    REF_RESIZE_CEIL,
    REF_RESIZE_SIMPLE,  // up when the dimension shrinks, down otherwise
} RefResizeNearest;

typedef struct RefResizeAxis {
    float  scale;
    double length;  // of the output, before it became whole
    double roi[2];  // start and end, as fractions of the input
} RefResizeAxis;

typedef struct RefResize {
    RefResizeMode       mode;
    RefResizeCoordinate coordinate;
    RefResizeNearest    nearest;
    bool                antialias, exclude_outside;
    double              cubic_a, extrapolation;
    RefResizeAxis       axis[TENSOR_MAX_RANK];
} RefResize;

// y has x's type and rank. Nearest copies elements of any type; the others need numbers.
MUST_USE Err ref_resize(const RefResize *p, const Tensor *x, Tensor *y, Arena *scratch);

// Where along an input of size in the output index o of size out comes from.
double ref_resize_coordinate(const RefResize *p, const RefResizeAxis *a, int64_t o, int64_t in,
                             int64_t out);

// The input index that output o of dimension d copies in nearest mode; -1: outside the region.
int64_t ref_resize_nearest(const RefResize *p, int32_t d, int64_t o, int64_t in, int64_t out);

double ref_resize_cubic(double a, double x);  // Keys' kernel at distance x
