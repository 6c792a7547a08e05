// Conv: direct convolution over blocked tensors: register tiles accumulate over taps and channels.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/elementwise.h"
#include "kernel/isa.h"

// Sizes of a convolution, also used by its relatives (depthwise, transposed, Winograd, pool), which
// have no depth.
// x [n][ceil(ic / lanes)][ih][iw][lanes], y [n][ceil(oc / lanes)][oh][ow][lanes]. A 1-D
// convolution has height 1. All sizes are positive; the caller has checked them.
typedef struct ConvShape {
    uint32_t n, ic, ih, iw, oc, oh, ow;
    uint32_t kh, kw, sh, sw, dh, dw;  // kernel, stride, dilation
    uint32_t pt, pl;                  // padding at the top and left; oh, ow imply the other sides
    uint32_t groups;
    uint32_t id, od, kd, sd, dd, pf;  // depth, in front of the height, of 3-D; kd 0: there is none
} ConvShape;

// Version.pack: a bit set. The other fields of a Version here: rows: per task, output rows if the
// input is staged, else pixels; columns: vectors of output channels per task; depth: input
// channels; 0 means all. Padded inputs are always staged.
typedef enum ConvPack {
    CONV_STAGED = 1,  // each task copies its input rows into contiguous scratch
    CONV_PLAIN = 2,   // x is [n][ic][ih][iw], as in the first layer of a network
} ConvPack;

// Arguments of isa->conv(&conv, part). epilogue.add must not overlap y: y holds partial sums.
typedef struct Conv {
    ConvShape    shape;
    Version      version;  // one of conv_versions
    Epilogue     epilogue;
    const float *x, *weights;  // x: blocked, or plain with CONV_PLAIN; weights: from conv_pack
    float       *y;            // blocked
} Conv;

// Works for any number of groups; groups smaller than a vector run several at a time, with zero
// weights between them. w is ONNX's [oc][ic / groups][kh][kw]. All versions share one packing for
// plain x and one for blocked x.
size_t conv_pack_bytes(const ConvShape *s, const Isa *isa, bool plain);
void   conv_pack(const ConvShape *s, const Isa *isa, bool plain, const float *w, float *out);

// Writes at most max versions, the one expected to be fastest first; returns how many.
uint32_t conv_versions(const ConvShape *s, const Isa *isa, bool plain, const CacheSizes *caches,
                       Version *out, uint32_t max);
uint32_t conv_tasks(const ConvShape *s, const Isa *isa, const Version *v);
size_t   conv_scratch(const ConvShape *s, const Isa *isa, const Version *v);  // bytes per part
Traffic conv_traffic(const ConvShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts);
