// Layout: assigns each value the plain (NCHW) or the blocked (channels in vectors) layout, and
// inserts conversions.
#pragma once

#include "compile/ir.h"

void layout_assign(Ir *ir);

size_t layout_bytes(const Tensor *t, Layout layout, uint32_t lanes);  // size of a buffer for it
bool   layout_is_noop(const Tensor *t, uint32_t lanes);  // both layouts have the same bytes

// A tensor of rank 2 or more as images: [n][c][pixels].
typedef struct ImageDims {
    uint32_t n, c;
    uint64_t pixels;
} ImageDims;

ImageDims layout_image_dims(const Tensor *t);
