// Layout: assigns each value the plain (NCHW), the blocked (channels in vectors) or the pixel
// (NHWC) layout, and inserts conversions.
#pragma once

#include "compile/ir.h"
#include "kernel/strided_copy.h"

void layout_assign(Ir *ir);

size_t layout_bytes(const Tensor *t, Layout layout, uint32_t lanes);  // size of a buffer for it
bool   layout_is_noop(const Tensor *t, Layout from, Layout to, uint32_t lanes);  // the same bytes

// Copy of a tensor from the plain layout to pixels, or back.
StridedCopy layout_pixel_copy(const Tensor *t, bool to_pixels, uint32_t lanes);

// A tensor of rank 2 or more as images: [n][c][pixels].
typedef struct ImageDims {
    uint32_t n, c;
    uint64_t pixels;
} ImageDims;

ImageDims layout_image_dims(const Tensor *t);
