// ConvShape: the sizes of a two-dimensional convolution over blocked tensors.
#pragma once

#include <stdint.h>

// x [n][ceil(ic / lanes)][ih][iw][lanes], y [n][ceil(oc / lanes)][oh][ow][lanes]. One spatial
// dimension is a height of 1. Every size is positive and was checked by whoever made the shape.
typedef struct ConvShape {
    uint32_t n, ic, ih, iw, oc, oh, ow;
    uint32_t kh, kw, sh, sw, dh, dw;  // kernel, stride, dilation
    uint32_t pt, pl;                  // padding above and on the left; the rest follows from oh, ow
    uint32_t groups;
} ConvShape;
