// Int8Window: depthwise convolution and pooling of bytes, over pixels with contiguous channels.
#pragma once

#include "kernel/int8_conv.h"
#include "kernel/pool.h"
#include "kernel/quantize.h"

// Depthwise convolution: one weight per channel and tap. Taps are taken in pairs, so that a 32-bit
// lane multiplies and adds two 16-bit products; or, where instructions add four products of bytes,
// in quads.
enum { INT8_DEPTHWISE_BLOCK = 8, INT8_DEPTHWISE_WIDE = 32 };  // channels
enum { INT8_DEPTHWISE_PIXELS = 4 };                           // of a row, at a time

typedef struct Int8Taps {
    const int16_t *pairs;  // [blocks of 8 channels][pairs of taps][8][2]
    const int8_t  *quads;  // [blocks of 32 channels][quads of taps][4][2][4][4]; NULL: none
} Int8Taps;

// w is [channels][kh][kw] with the zero point subtracted. Quads are packed if x is unsigned, the
// weights are bytes and the CPU adds four products.
size_t   int8_depthwise_pack_bytes(const Int8Shape *s);
Int8Taps int8_depthwise_pack(const Int8Shape *s, const Isa *isa, const int16_t *w, void *memory);

// Arguments of isa->int8_depthwise(&d, part).
typedef struct Int8Depthwise {
    Int8Shape      shape;  // oc == ic == groups; pitches are multiples of 8
    Int8Taps       weights;
    const int32_t *bias;  // [channels padded to 16], minus the zero point times the sum of weights
    int32_t        x_zero;
    const uint8_t *x;
    uint8_t       *y;
    Int8Output     out;  // INT8_BYTES
} Int8Depthwise;

// Taps, rounded up to quads: entries of a pixel's table of pointers.
static inline uint32_t int8_depthwise_slots(const ConvShape *s) {
    return (s->kh * s->kw + INT8_QUAD - 1) / INT8_QUAD * INT8_QUAD;
}

uint32_t int8_depthwise_tasks(const Int8Shape *s);    // a task is an output row
size_t   int8_depthwise_scratch(const Int8Shape *s);  // bytes per part

// Arguments of isa->int8_pool(&p, part). A task is an output row.
typedef struct Int8Pool {
    Pool           pool;  // x and y are not read
    uint32_t       pitch;
    ByteScale      from, to;
    const uint8_t *x;
    uint8_t       *y;
} Int8Pool;

uint32_t int8_pool_tasks(const Int8Pool *p);
