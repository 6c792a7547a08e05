// Depthwise: depthwise convolution over blocked tensors: every channel has a small kernel of its
// own.
#pragma once

#include "kernel/conv.h"
#include "kernel/elementwise.h"

// Shapes have groups == ic == oc. A version's rows are output rows of a task, its tile_rows the
// pixels held in registers; split says whether parts get channel blocks or rows first.
typedef struct Depthwise {
    ConvShape    shape;
    Version      version;
    const float *x, *weights;  // weights as depthwise_pack left them
    float       *y;
    Epilogue     epilogue;
} Depthwise;

// Vector kernel: isa->depthwise(depth, part).

// [ceil(c / lanes)][kh * kw][lanes] floats from [c][1][kh][kw].
size_t depthwise_weight_count(const ConvShape *s, const Isa *isa);
void   depthwise_pack(const ConvShape *s, const Isa *isa, const float *w, float *packed);

uint32_t depthwise_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches,
                            Version *out, uint32_t max);
uint32_t depthwise_tasks(const ConvShape *s, const Isa *isa, const Version *v);
size_t   depthwise_scratch(const ConvShape *s, const Isa *isa, const Version *v);
Traffic  depthwise_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                           const CacheSizes *caches, uint32_t parts);

// How a row is computed: straight from x (3 or 5 taps, stride 1 or 2: inputs stay in registers for
// all taps; or nothing hangs over), or from a copy with its padding.
typedef enum DepthwiseMethod { DEPTHWISE_TAPS, DEPTHWISE_INSIDE, DEPTHWISE_PADDED } DepthwiseMethod;
DepthwiseMethod depthwise_method(const ConvShape *s);

// Of DEPTHWISE_PADDED: the width of the copy, and the output rows made of one copy.
uint32_t depthwise_padded_width(const ConvShape *s);
uint32_t depthwise_padded_rows(const ConvShape *s, uint32_t lanes, const Version *v);
