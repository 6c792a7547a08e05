// Winograd: 3x3 convolution with stride 1 by Winograd's minimal filtering, over blocked tensors.
//
// A tile of m x m outputs needs (m + 2)^2 multiplications per channel pair instead of 9 m^2. Inputs
// and weights are evaluated at m + 1 points and at infinity in each direction; per pair of points,
// the sum over channels is one matrix product [tiles x channels] * [channels x output channels].
#pragma once

#include <stdbool.h>

#include "kernel/blocking.h"
#include "kernel/conv.h"
#include "kernel/elementwise.h"
#include "kernel/isa.h"
#include "kernel/version.h"

// Arguments of isa->winograd(&winograd, part). y may be epilogue.add, but not x.
typedef struct Winograd {
    ConvShape    shape;
    Version      version;
    Epilogue     epilogue;
    const float *x, *weights;  // blocked; from winograd_pack for the version's algorithm
    float       *y;            // blocked
} Winograd;

bool winograd_fits(const ConvShape *s);  // 3x3, stride 1, dilation 1, one group

// w is ONNX's [oc][ic][3][3]; out holds winograd_pack_bytes, aligned to TENSOR_ALIGN.
size_t winograd_pack_bytes(const ConvShape *s, const Isa *isa, Algo algo);
void   winograd_pack(const ConvShape *s, const Isa *isa, Algo algo, const float *w, float *out);

// Writes at most max versions, the one expected to be fastest first; returns how many.
uint32_t winograd_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches,
                           Version *out, uint32_t max);
uint32_t winograd_tasks(const ConvShape *s, const Isa *isa, const Version *v);
// Bytes per part.
size_t  winograd_scratch(const ConvShape *s, const Isa *isa, const Version *v);
Traffic winograd_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                         const CacheSizes *caches, uint32_t parts);

// How a version cuts the convolution into tiles, blocks of tiles and strips of output channels.
typedef struct WinogradPlan {
    uint32_t m, t, points;             // m x m outputs from t x t inputs; points = t * t
    uint32_t tiles_y, tiles_x, tiles;  // per image, per image, per batch
    uint32_t most, blocks;             // tiles in the largest block; number of blocks
    uint32_t vecs, widest, strips;     // vectors of output channels; in the widest strip; strips
    uint32_t channels;                 // blocks of input channels
    // Transformed inputs are [points][tile][channel], products [tile][vector][points][lanes].
    size_t tile_stride, point_stride, product_stride;  // floats
    size_t inputs, products;                           // floats
} WinogradPlan;

static inline WinogradPlan winograd_plan(const ConvShape *s, uint32_t lanes, const Version *v) {
    WinogradPlan p = {.m = v->algo == ALGO_WINOGRAD4 ? 4 : 2};
    p.t = p.m + 2;
    p.points = p.t * p.t;
    p.tiles_y = ceil_div(s->oh, p.m);
    p.tiles_x = ceil_div(s->ow, p.m);
    p.tiles = s->n * p.tiles_y * p.tiles_x;
    p.blocks = ceil_div(p.tiles, v->rows);
    p.most = ceil_div(p.tiles, p.blocks);
    p.vecs = ceil_div(s->oc, lanes);
    p.strips = ceil_div(p.vecs, v->columns);
    p.widest = ceil_div(p.vecs, p.strips);
    p.channels = ceil_div(s->ic, lanes);
    // One extra cache line, so that points and tiles do not all map to the same cache sets.
    p.tile_stride = (size_t)p.channels * lanes + 16;
    p.point_stride = p.most * p.tile_stride + 16;
    p.product_stride = (size_t)p.widest * p.points * lanes;
    p.inputs = p.points * p.point_stride;
    p.products = p.most * p.product_stride;
    return p;
}
