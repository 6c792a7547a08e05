// Wino: 3x3 convolution with stride 1 by Winograd's minimal filtering, over blocked tensors.
//
// A tile of m x m outputs needs (m + 2)^2 products per pair of channels instead of 9 m^2. Inputs
// and weights are evaluated at m + 1 points and infinity in each direction; there the sum over
// channels is one matrix product per pair of points: tiles x channels x columns.
#pragma once

#include <stdbool.h>

#include "kernel/conv_shape.h"
#include "kernel/finish.h"
#include "kernel/isa.h"

// What isa->wino_run(&wino, part) computes. y may be finish.add, but not x.
typedef struct Wino {
    ConvShape    shape;
    Version      version;
    Finish       finish;
    const float *x, *weights;  // blocked; as wino_pack made them for the version's algorithm
    float       *y;            // blocked
} Wino;

bool wino_fits(const ConvShape *s);  // 3x3, stride 1, dilation 1, one group

// w is ONNX's [oc][ic][3][3]; out holds wino_pack_bytes, aligned to TENSOR_ALIGN.
size_t wino_pack_bytes(const ConvShape *s, const Isa *isa, Algo algo);
void   wino_pack(const ConvShape *s, const Isa *isa, Algo algo, const float *w, float *out);

// Writes at most max versions, best guess first; returns how many.
uint32_t wino_versions(const ConvShape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                       uint32_t max);
uint32_t wino_tasks(const ConvShape *s, const Isa *isa, const Version *v);
size_t   wino_scratch(const ConvShape *s, const Isa *isa, const Version *v);  // bytes of each part
Traffic wino_traffic(const ConvShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts);
