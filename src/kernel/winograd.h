// Winograd: 3x3 convolution with stride 1 by Winograd's minimal filtering, over blocked tensors.
//
// A tile of m x m outputs needs (m + 2)^2 products per pair of channels instead of 9 m^2. Inputs
// and weights are evaluated at m + 1 points and infinity in each direction; there the sum over
// channels is one matrix product per pair of points: tiles x channels x columns.
#pragma once

#include <stdbool.h>

#include "kernel/conv.h"
#include "kernel/elementwise.h"
#include "kernel/isa.h"
#include "kernel/version.h"

// What isa->winograd(&wino, part) computes. y may be epilogue.add, but not x.
typedef struct Winograd {
    ConvShape    shape;
    Version      version;
    Epilogue     epilogue;
    const float *x, *weights;  // blocked; as winograd_pack made them for the version's algorithm
    float       *y;            // blocked
} Winograd;

bool winograd_fits(const ConvShape *s);  // 3x3, stride 1, dilation 1, one group

// w is ONNX's [oc][ic][3][3]; out holds winograd_pack_bytes, aligned to TENSOR_ALIGN.
size_t winograd_pack_bytes(const ConvShape *s, const Isa *isa, Algo algo);
void   winograd_pack(const ConvShape *s, const Isa *isa, Algo algo, const float *w, float *out);

// Writes at most max versions, best guess first; returns how many.
uint32_t winograd_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches,
                           Version *out, uint32_t max);
uint32_t winograd_tasks(const ConvShape *s, const Isa *isa, const Version *v);
size_t   winograd_scratch(const ConvShape *s, const Isa *isa,
                          const Version *v);  // bytes of each part
Traffic  winograd_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                          const CacheSizes *caches, uint32_t parts);

// WinogradPlan: how a version cuts a Winograd convolution into tiles, blocks of tiles and of
// columns.

typedef struct WinogradPlan {
    uint32_t m, t, points;             // m x m outputs of t x t inputs; t * t products
    uint32_t tiles_y, tiles_x, tiles;  // of an image, of an image, of the batch
    uint32_t most, blocks;             // tiles of the largest block; blocks
    uint32_t vecs, widest, strips;     // vectors of columns; of the widest strip of columns; strips
    uint32_t channels;                 // blocks of input channels
    // Transformed inputs are [points][tile][channel], products [tile][vector][points][lanes].
    size_t tile_stride, point_stride, product_stride;  // floats
    size_t inputs, products;                           // floats
} WinogradPlan;

static inline uint32_t winograd_groups(uint32_t n, uint32_t most) { return (n + most - 1) / most; }

static inline WinogradPlan winograd_plan(const ConvShape *s, uint32_t lanes, const Version *v) {
    WinogradPlan p = {.m = v->algo == ALGO_WINOGRAD4 ? 4 : 2};
    p.t = p.m + 2;
    p.points = p.t * p.t;
    p.tiles_y = winograd_groups(s->oh, p.m);
    p.tiles_x = winograd_groups(s->ow, p.m);
    p.tiles = s->n * p.tiles_y * p.tiles_x;
    p.blocks = winograd_groups(p.tiles, v->rows);
    p.most = winograd_groups(p.tiles, p.blocks);
    p.vecs = winograd_groups(s->oc, lanes);
    p.strips = winograd_groups(p.vecs, v->columns);
    p.widest = winograd_groups(p.vecs, p.strips);
    p.channels = winograd_groups(s->ic, lanes);
    // A line more than needed, so that points and tiles do not all fall into the same cache sets.
    p.tile_stride = (size_t)p.channels * lanes + 16;
    p.point_stride = p.most * p.tile_stride + 16;
    p.product_stride = (size_t)p.widest * p.points * lanes;
    p.inputs = p.points * p.point_stride;
    p.products = p.most * p.product_stride;
    return p;
}
