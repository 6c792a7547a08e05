// Int8Conv: convolutions and matrix products of bytes with exact 32-bit sums and a fused output:
// requantised bytes, scaled floats or the sums themselves.
//
// Activations are pixels: the channels of a pixel are contiguous, pixels are x_pitch bytes apart. A
// matrix product is a convolution with a 1x1 kernel over an image of one column and m rows.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/conv.h"
#include "kernel/elementwise.h"
#include "kernel/int8_residual.h"
#include "kernel/isa.h"
#include "kernel/version.h"

// Weights of one output channel are summed over at most this many inputs: 255 * 255 times as much,
// with a bias of 2^30, fits 32 bits.
enum { INT8_MAX_DEPTH = 1 << 14, INT8_MAX_BIAS = 1 << 30 };

enum { INT8_QUAD = 4 };  // inputs that one 32-bit lane multiplies and adds at a time

typedef struct Int8Shape {
    ConvShape conv;
    uint32_t  x_pitch, y_pitch;  // elements between pixels of x and of y
    bool      x_signed;          // x is int8; else uint8
} Int8Shape;

Int8Shape int8_product(uint32_t m, uint32_t n, uint32_t k, bool x_signed);

// Elements between pixels of c channels in memory that kernels write.
static inline uint32_t int8_pitch(uint32_t c, uint32_t lanes) {
    return c <= INT8_QUAD ? INT8_QUAD : (c + lanes - 1) / lanes * lanes;
}

// isa->int8_traits(&traits): what the CPU's instructions do.
typedef struct Int8Traits {
    bool
        adds_quads;  // four products are added in 32 bits; else pairs of them in 16 bits, saturated
} Int8Traits;

// Packed weights. A vector instruction that adds two products in 16 bits saturates, so a pair of
// weights of one sign may add up to at most 128. What exceeds it goes into extra quads, which are
// added to the sums like the others: the result is exact.
typedef struct Int8Weights {
    const int8_t   *quads;  // [vectors][quads][lanes][4]
    const int8_t   *extra_quads;
    const uint32_t *extra_index;  // quad that an extra one belongs to
    const uint32_t *extra_start;  // [vectors + 1] first extra quad of each vector
    const int32_t  *sums;         // [vectors][lanes] sum of the weights of an output channel
} Int8Weights;

// w is [oc][ic / groups][kh][kw], with the zero point subtracted: from -255 to 255. Bytes depend on
// w: an allocation of that size is given to int8_pack.
size_t      int8_pack_bytes(const Int8Shape *s, const Isa *isa, const int16_t *w);
Int8Weights int8_pack(const Int8Shape *s, const Isa *isa, const int16_t *w, void *memory);

typedef enum Int8OutputKind {
    INT8_BYTES,   // clip(round(sum * scale), lo, hi) + zero
    INT8_FLOATS,  // epilogue(sum * scale)
    INT8_SUMS,    // sum as int32
} Int8OutputKind;

typedef struct Int8Output {
    Int8OutputKind kind;
    const float   *scale;   // [vectors][lanes] per output channel
    float          factor;  // of all scales; multiplied first
    float          lo, hi;  // bytes: bounds before the zero point is added
    int32_t        zero;
    Epilogue       epilogue;  // floats: as of a Gemm with pixels as rows
    // bytes: what is added to them, laid out as y, or NULL
    const uint8_t      *added;
    const Int8Residual *residual;  // if added is not NULL
} Int8Output;

// Arguments of isa->int8_conv(&conv, part).
typedef struct Int8Conv {
    Int8Shape      shape;
    Version        version;  // one of int8_versions
    Int8Weights    weights;
    const int32_t *bias;    // [vectors][lanes], or NULL
    int32_t        x_zero;  // of x as stored
    const void    *x;
    void          *y;
    Int8Output     out;
} Int8Conv;

uint32_t int8_versions(const Int8Shape *s, const Isa *isa, const CacheSizes *caches, Version *out,
                       uint32_t max);
uint32_t int8_tasks(const Int8Shape *s, const Isa *isa, const Version *v);
size_t   int8_scratch(const Int8Shape *s, const Isa *isa, const Version *v);  // bytes per part
Traffic int8_traffic(const Int8Shape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts);
double  int8_cycles(const Int8Shape *s, const Isa *isa, const Version *v, uint32_t parts);

// What follows from shape, version and instruction set. The source is x, or rows copied to scratch
// with padding and the sign bit flipped, so that tiles read unsigned bytes.
typedef struct Int8Plan {
    uint32_t lanes, registers;
    uint32_t groups, ic, oc;  // groups as run: small ones are joined; channels per group
    uint32_t vecs, tap_quads, quads;
    bool     staged;
    uint32_t pixels, unit;    // of an image; pixels that stay together
    uint32_t pitch;           // bytes between pixels of the source
    uint32_t step_x, step_y;  // source pixels between neighbouring outputs
    uint32_t width, height;   // of a task's staged rows
    size_t   row_pitch;       // bytes between rows of the source
    uint32_t n_terms, term_quads;
    uint32_t tile_rows, tile_vecs, vec_groups, row_blocks, col_groups, block_units;
    uint32_t tasks;
    size_t   terms_bytes, rows_bytes, slab_bytes, sums_bytes;  // scratch, in this order
} Int8Plan;

Int8Plan int8_plan(const Int8Shape *s, const Version *v, uint32_t lanes, uint32_t registers);

static inline uint32_t int8_tile_most_rows(uint32_t registers, uint32_t vecs) {
    static const uint8_t few[] = {0, 8, 6, 4, 3}, many[] = {0, 16, 12, 8, 6};
    return registers >= 32 ? many[vecs] : few[vecs];
}

enum { INT8_TILE_VECS = 4, INT8_TILE_ROWS = 16 };
