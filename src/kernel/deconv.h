// Deconv: transposed convolution over blocked tensors: each phase of the output is a convolution.
//
// Outputs whose row and column leave the same rest by the stride meet the same taps. For them the
// taps lie side by side in the input, so that register tiles sum them up like any convolution.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/conv.h"
#include "kernel/elementwise.h"
#include "kernel/isa.h"

// What isa->deconv(&deconv, part) computes. The shape is ONNX's: x has ic, ih, iw and y has oc, oh,
// ow; pt and pl are cut from y; groups is 1. epilogue.add may be y. Version: rows counts rows of x.
typedef struct Deconv {
    ConvShape    shape;
    Version      version;  // one of deconv_versions
    Epilogue     epilogue;
    const float *x, *weights;  // blocked; as deconv_pack made them
    float       *y;            // blocked
} Deconv;

// w is ONNX's [ic][oc][kh][kw]; all versions share what it is packed to.
size_t deconv_pack_bytes(const ConvShape *s, const Isa *isa);
void   deconv_pack(const ConvShape *s, const Isa *isa, const float *w, float *out);

// Writes at most max versions, best guess first; returns how many.
uint32_t deconv_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                         uint32_t max);
uint32_t deconv_tasks(const ConvShape *s, const Isa *isa, const Version *v);
size_t  deconv_scratch(const ConvShape *s, const Isa *isa, const Version *v);  // bytes of each part
Traffic deconv_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                       const CacheSizes *caches, uint32_t parts);

// One direction. Output j of a phase meets input j + at through each tap of that phase.
typedef struct DeconvAxis {
    uint32_t in, out, taps, stride, dilation, pad;
    uint32_t count;  // outputs of the first phase, which has the most
    int32_t  low;    // the least `at` of all taps
    uint32_t reach;  // from there to the largest
} DeconvAxis;

static inline uint32_t deconv_phase(const DeconvAxis *a, uint32_t tap) {
    int64_t x = ((int64_t)tap * a->dilation - a->pad) % a->stride;
    return (uint32_t)(x < 0 ? x + a->stride : x);
}

static inline int32_t deconv_at(const DeconvAxis *a, uint32_t tap) {
    int64_t x = (int64_t)deconv_phase(a, tap) + a->pad - (int64_t)tap * a->dilation;
    return (int32_t)(x / a->stride);
}

typedef struct DeconvPlan {
    DeconvAxis y, x;
    uint32_t   lanes, blocks, rest, vecs;  // channels of x: full blocks, and after them
    uint32_t   tile_rows, tile_vecs, vec_groups, col_groups, row_blocks, tasks;
    uint32_t   block_rows, height, width;  // a task's rows: of a phase; staged, with padding
    size_t     row_pitch, block_pitch;     // floats of what is staged
    size_t     terms_bytes, rows_bytes, slab_bytes;  // of scratch, in this order
} DeconvPlan;

DeconvPlan deconv_plan(const ConvShape *s, const Version *v, uint32_t lanes, uint32_t registers);
