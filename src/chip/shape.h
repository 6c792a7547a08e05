// Shape: a convolution or product as seven loops, which is all that a cost model needs of a layer.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct Shape {
    const char *name, *op;
    // batch, output channels, input channels, filter, output, all of one group
    int64_t n, k, c, r, s, p, q, groups, stride_h, stride_w, dilation_h, dilation_w;
} Shape;

// The convolutions and fully connected layers of a zoo network or an ONNX file, in network order.
MUST_USE Err shape_list(const char *network, int64_t batch, Arena *a, Shape **out, uint32_t *n);
