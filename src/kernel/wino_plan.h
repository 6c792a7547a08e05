// WinoPlan: how a version cuts a Winograd convolution into tiles, blocks of tiles and of columns.
#pragma once

#include "kernel/conv_shape.h"
#include "kernel/part.h"
#include "kernel/version.h"

typedef struct WinoPlan {
    uint32_t m, t, points;             // m x m outputs of t x t inputs; t * t products
    uint32_t tiles_y, tiles_x, tiles;  // of an image, of an image, of the batch
    uint32_t most, blocks;             // tiles of the largest block; blocks
    uint32_t vecs, widest, strips;     // vectors of columns; of the widest strip of columns; strips
    uint32_t channels;                 // blocks of input channels
    // Transformed inputs are [points][tile][channel], products [tile][vector][points][lanes].
    size_t tile_stride, point_stride, product_stride;  // floats
    size_t inputs, products;                           // floats
} WinoPlan;

static inline uint32_t wino_groups(uint32_t n, uint32_t most) { return (n + most - 1) / most; }

static inline WinoPlan wino_plan(const ConvShape *s, uint32_t lanes, const Version *v) {
    WinoPlan p = {.m = v->algo == ALGO_WINOGRAD4 ? 4 : 2};
    p.t = p.m + 2;
    p.points = p.t * p.t;
    p.tiles_y = wino_groups(s->oh, p.m);
    p.tiles_x = wino_groups(s->ow, p.m);
    p.tiles = s->n * p.tiles_y * p.tiles_x;
    p.blocks = wino_groups(p.tiles, v->rows);
    p.most = wino_groups(p.tiles, p.blocks);
    p.vecs = wino_groups(s->oc, lanes);
    p.strips = wino_groups(p.vecs, v->columns);
    p.widest = wino_groups(p.vecs, p.strips);
    p.channels = wino_groups(s->ic, lanes);
    // A line more than needed, so that points and tiles do not all fall into the same cache sets.
    p.tile_stride = (size_t)p.channels * lanes + 16;
    p.point_stride = p.most * p.tile_stride + 16;
    p.product_stride = (size_t)p.widest * p.points * lanes;
    p.inputs = p.points * p.point_stride;
    p.products = p.most * p.product_stride;
    return p;
}
