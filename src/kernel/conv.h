// Conv: direct convolution over blocked tensors: sums over taps and channels in register tiles.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kernel/conv_shape.h"
#include "kernel/finish.h"
#include "kernel/isa.h"

// How a version means its numbers. rows: output rows of a task where the input is staged, pixels
// where it is read in place; columns: vectors of a task; depth: channels; 0: all of them. pack: a
// sum of these. What is padded is always staged.
typedef enum ConvPack {
    CONV_STAGED = 1,  // each task copies the rows it needs next to each other
    CONV_PLAIN = 2,   // x is [n][ic][ih][iw], as a network's first layer has it
} ConvPack;

// What isa->conv(&conv, part) computes. finish.add may be neither y nor overlap it: sums pass
// through y on their way.
typedef struct Conv {
    ConvShape    shape;
    Version      version;  // one of conv_versions
    Finish       finish;
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
