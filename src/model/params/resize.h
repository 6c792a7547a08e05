// Resize: the parameters of Resize and Upsample, read from attributes and inputs and checked.
#pragma once

#include "model/op.h"

typedef enum ResizeMode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } ResizeMode;

typedef enum ResizeCoordinate {
    RESIZE_HALF_PIXEL,
    RESIZE_HALF_PIXEL_SYMMETRIC,
    RESIZE_PYTORCH_HALF_PIXEL,
    RESIZE_ALIGN_CORNERS,
    RESIZE_ASYMMETRIC,
    RESIZE_TF_HALF_PIXEL_FOR_NN,
    RESIZE_TF_CROP_AND_RESIZE,
    RESIZE_COORDINATES
} ResizeCoordinate;

typedef enum ResizeNearest {
    RESIZE_ROUND_PREFER_FLOOR,
    RESIZE_ROUND_PREFER_CEIL,
    RESIZE_FLOOR,
    RESIZE_CEIL,
    RESIZE_SIMPLE,  // before version 11: ceil when downscaling, floor otherwise
    RESIZE_NEARESTS
} ResizeNearest;

typedef struct Resize {
    ResizeMode       mode;
    ResizeCoordinate coordinate;
    ResizeNearest    nearest;
    bool             antialias, exclude_outside;
    float            cubic_a, extrapolation;
    bool             known;  // false: scales, sizes or roi have no data; the rest is not set
    int64_t          out[TENSOR_MAX_RANK];
    float            scale[TENSOR_MAX_RANK];
    double           length[TENSOR_MAX_RANK];  // of the output, before rounding
    double           roi[TENSOR_MAX_RANK][2];  // start and end, as fractions of the input
} Resize;

MUST_USE Err resize_read(const OpCall *c, Resize *out);
