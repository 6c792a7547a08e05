// NarrowRounding: floats of a product rounded to 16 or 8 bits, and the size of what that changed.
//
// Bytes are symmetric: a block along k of one column has the scale max |w| / 127, its numbers are
// 128 + w / scale, rounded to nearest, from 1 to 255.
#pragma once

#include "base/arena.h"
#include "kernel/narrow_weights.h"

// [n][k] if transposed, else [k][n]; each is multiplied by alpha first.
typedef struct FloatWeights {
    const float *at;
    bool         transposed;
    float        alpha;
} FloatWeights;

typedef struct RoundedWeights {
    uint16_t *half;    // of GEMM_F16: in the order of the floats
    uint8_t  *bytes;   // of GEMM_U8: [n][narrow_depth]
    float    *scales;  // [n][narrow_blocks]
} RoundedWeights;

typedef struct NarrowError {
    double max;  // largest difference / largest weight, of the whole layer
    double rms;  // root mean square of the differences / that of the weights
} NarrowError;

// Elements along k with one scale: k in equal blocks of at most 128.
uint32_t narrow_block_size(uint32_t k);
float    narrow_largest(const FloatWeights *w, size_t count);  // NAN or INFINITY: not finite

// s->weights is GEMM_F16 or GEMM_U8; the numbers are finite and in its range. Memory of the arena.
RoundedWeights narrow_round(const GemmShape *s, const FloatWeights *w, Arena *a);
NarrowError    narrow_error(const GemmShape *s, const FloatWeights *w, const RoundedWeights *r);
void narrow_pack_rounded(const GemmShape *s, const FloatWeights *w, const RoundedWeights *r,
                         const Isa *isa, void *out);
