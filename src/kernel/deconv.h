// Deconv: transposed convolution over blocked tensors, as one convolution per output phase.
//
// Outputs with equal coordinates modulo the stride (a phase) use the same taps, and those taps are
// contiguous in the input. So each phase runs on the register tiles of an ordinary convolution.
// The taps in depth of a volume are further terms: each output plane stages the planes it reads.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/conv.h"
#include "kernel/elementwise.h"
#include "kernel/isa.h"

// Arguments of isa->deconv(&deconv, part). The shape is ONNX's: x has ic, ih, iw; y has oc, oh, ow;
// pt and pl are cropped from y. epilogue.add may be y. Version.rows counts rows of x.
typedef struct Deconv {
    ConvShape    shape;
    Version      version;  // one of deconv_versions
    Epilogue     epilogue;
    const float *x, *weights;  // blocked; from deconv_pack
    float       *y;            // blocked
} Deconv;

// w is ONNX's [ic][oc / groups][kd][kh][kw]; all versions share one packing.
size_t deconv_pack_bytes(const ConvShape *s, const Isa *isa);
void   deconv_pack(const ConvShape *s, const Isa *isa, const float *w, float *out);

// Writes at most max versions, the one expected to be fastest first; returns how many.
uint32_t deconv_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                         uint32_t max);
uint32_t deconv_tasks(const ConvShape *s, const Isa *isa, const Version *v);
size_t   deconv_scratch(const ConvShape *s, const Isa *isa, const Version *v);  // bytes per part
Traffic  deconv_traffic(const ConvShape *s, const Isa *isa, const Version *v,
                        const CacheSizes *caches, uint32_t parts);

// One spatial axis. Output j of a phase reads input j + deconv_at(tap) for each tap of the phase.
typedef struct DeconvAxis {
    uint32_t in, out, taps, stride, dilation, pad;
    uint32_t count;  // outputs of phase 0, which has the most
    int32_t  low;    // smallest deconv_at of all taps
    uint32_t reach;  // largest deconv_at minus low
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
    DeconvAxis z, y, x;
    uint32_t   lanes, blocks, rest, vecs;  // full blocks of input channels, channels after them
    uint32_t   span;    // blocks that one vector of output channels reads; all without groups
    uint32_t   depth;   // packed input channels per vector
    uint32_t   planes;  // most taps in depth of a phase
    uint32_t   tile_rows, tile_vecs, vec_groups, col_groups, row_blocks, tasks;
    uint32_t   block_rows, height, width;  // rows per phase of a task; staged size with padding
    size_t     row_pitch, plane_pitch, block_pitch;  // floats of the staged input
    size_t     terms_bytes, rows_bytes, slab_bytes;  // scratch, in this order
} DeconvPlan;

DeconvPlan deconv_plan(const ConvShape *s, const Version *v, uint32_t lanes, uint32_t registers);

// First of the `span` blocks of input channels that vector `vec` of output channels reads.
static inline uint32_t deconv_first_block(const ConvShape *s, const DeconvPlan *p, uint32_t vec) {
    uint32_t group = vec * p->lanes / (s->oc / s->groups);
    uint32_t first = group * (s->ic / s->groups) / p->lanes;
    uint32_t last = p->blocks + (p->rest > 0) - p->span;
    return first < last ? first : last;
}
