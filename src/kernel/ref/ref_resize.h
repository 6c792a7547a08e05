// Reference resize: nearest, linear and cubic resampling along each dimension.
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
    REF_RESIZE_SIMPLE,  // ceil if the dimension shrinks, else floor
} RefResizeNearest;

typedef struct RefResizeAxis {
    float  scale;
    double length;  // exact output length, before rounding
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

// y has the type and rank of x. Nearest copies elements of any type; other modes need numeric
// types.
MUST_USE Err ref_resize(const RefResize *p, const Tensor *x, Tensor *y, Arena *scratch);

// Input coordinate of output index o, for input size in and output size out.
double ref_resize_coordinate(const RefResize *p, const RefResizeAxis *a, int64_t o, int64_t in,
                             int64_t out);

// Nearest mode: input index of output o along dimension d; -1: outside the region.
int64_t ref_resize_nearest(const RefResize *p, int32_t d, int64_t o, int64_t in, int64_t out);

double ref_resize_cubic(double a, double x);  // Keys' kernel at distance x
