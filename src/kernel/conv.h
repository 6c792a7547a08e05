// ConvShape: the sizes of a two-dimensional convolution over blocked tensors.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/elementwise.h"
#include "kernel/isa.h"

// x [n][ceil(ic / lanes)][ih][iw][lanes], y [n][ceil(oc / lanes)][oh][ow][lanes]. One spatial
// dimension is a height of 1. Every size is positive and was checked by whoever made the shape.
typedef struct ConvShape {
    uint32_t n, ic, ih, iw, oc, oh, ow;
    uint32_t kh, kw, sh, sw, dh, dw;  // kernel, stride, dilation
    uint32_t pt, pl;                  // padding above and on the left; the rest follows from oh, ow
    uint32_t groups;
} ConvShape;

// Conv: direct convolution over blocked tensors: sums over taps and channels in register tiles.

// How a version means its numbers. rows: output rows of a task where the input is staged, pixels
// where it is read in place; columns: vectors of a task; depth: channels; 0: all of them. pack: a
// sum of these. What is padded is always staged.
typedef enum ConvPack {
    CONV_STAGED = 1,  // each task copies the rows it needs next to each other
    CONV_PLAIN = 2,   // x is [n][ic][ih][iw], as a network's first layer has it
} ConvPack;

// What isa->conv(&conv, part) computes. epilogue.add may be neither y nor overlap it: sums pass
// through y on their way.
typedef struct Conv {
    ConvShape    shape;
    Version      version;  // one of conv_versions
    Epilogue     epilogue;
    const float *x, *weights;  // blocked, or plain if the version says so; as conv_pack made them
    float       *y;            // blocked
} Conv;

// Any number of groups works; those that fill no vectors are run several at a time, with zeros
// between them. w is ONNX's [oc][ic / groups][kh][kw]; all versions of plain or blocked x share it.
size_t conv_pack_bytes(const ConvShape *s, const Isa *isa, bool plain);
void   conv_pack(const ConvShape *s, const Isa *isa, bool plain, const float *w, float *out);

// Writes at most max versions, best guess first; returns how many.
uint32_t conv_versions(const ConvShape *s, const Isa *isa, bool plain, const CacheSizes *caches,
                       Version *out, uint32_t max);
uint32_t conv_tasks(const ConvShape *s, const Isa *isa, const Version *v);
size_t   conv_scratch(const ConvShape *s, const Isa *isa, const Version *v);  // bytes of each part
Traffic conv_traffic(const ConvShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts);
