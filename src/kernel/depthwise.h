// Depthwise: depthwise convolution over blocked tensors: one small kernel per channel.
#pragma once

#include "kernel/conv.h"
#include "kernel/elementwise.h"

// Arguments of isa->depthwise(&depthwise, part). groups == ic == oc. Version: rows: output rows per
// task; tile_rows: pixels held in registers; split: whether parts get channel blocks or rows.
typedef struct Depthwise {
    ConvShape    shape;
    Version      version;
    const float *x, *weights;  // weights from depthwise_pack
    float       *y;
    Epilogue     epilogue;
} Depthwise;

// Packs [c][1][kh][kw] to [ceil(c / lanes)][kh * kw][lanes] floats.
size_t depthwise_weight_count(const ConvShape *s, const Isa *isa);
void   depthwise_pack(const ConvShape *s, const Isa *isa, const float *w, float *packed);

uint32_t depthwise_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches,
                            Version *out, uint32_t max);
uint32_t depthwise_tasks(const ConvShape *s, const Isa *isa, const Version *v);
size_t   depthwise_scratch(const ConvShape *s, const Isa *isa, const Version *v);
Traffic  depthwise_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                           const CacheSizes *caches, uint32_t parts);

// How an output row is computed. TAPS: from x, each input loaded once for all its taps (kernel
// width 3 or 5, stride 1 or 2). INSIDE: from x, no window crosses the sides. PADDED: from a padded
// copy of the input rows.
typedef enum DepthwiseMethod { DEPTHWISE_TAPS, DEPTHWISE_INSIDE, DEPTHWISE_PADDED } DepthwiseMethod;
DepthwiseMethod depthwise_method(const ConvShape *s);

// DEPTHWISE_PADDED: width of the copy in pixels, and output rows computed from one copy.
uint32_t depthwise_padded_width(const ConvShape *s);
uint32_t depthwise_padded_rows(const ConvShape *s, uint32_t lanes, const Version *v);
