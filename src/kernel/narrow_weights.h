// NarrowWeights: packed weights of 16, 8 or 4 bits, which products widen to floats.
//
// A panel has the weights of one vector of columns. 16-bit floats lie as floats do: [k][lanes].
// Integers lie in blocks along k: a vector of scales, with zero points a vector of offsets (-zero *
// scale), then words [block * bits / 32][lanes]: lane j has consecutive weights of column j
// from its low bits on.
#pragma once

#include "kernel/blocking.h"
#include "kernel/gemm.h"

static inline uint32_t narrow_bits(const GemmShape *s) {
    return s->weights == GEMM_U4 ? 4 : s->weights == GEMM_U8 ? 8 : s->weights == GEMM_F32 ? 32 : 16;
}

static inline bool narrow_has_blocks(const GemmShape *s) {
    return s->weights == GEMM_U4 || s->weights == GEMM_U8;
}

static inline uint32_t narrow_blocks(const GemmShape *s) {
    return narrow_has_blocks(s) ? ceil_div(s->k, s->block) : 0;
}

// k, rounded up to whole blocks: a product of few rows reads so many elements of a.
static inline size_t narrow_depth(const GemmShape *s) {
    return narrow_has_blocks(s) ? (size_t)narrow_blocks(s) * s->block : s->k;
}

static inline size_t narrow_block_bytes(const GemmShape *s, uint32_t lanes) {
    size_t vectors = (s->zeros ? 2U : 1U) + (size_t)s->block * narrow_bits(s) / 32;
    return vectors * lanes * sizeof(float);
}

static inline size_t narrow_panel_bytes(const GemmShape *s, uint32_t lanes) {
    if (narrow_has_blocks(s)) return narrow_blocks(s) * narrow_block_bytes(s, lanes);
    return (size_t)s->k * lanes * narrow_bits(s) / 8;
}

// Weights [n][k] in blocks: data has block * bits / 8 bytes per block of a column.
typedef struct BlockWeights {
    const uint8_t *data;
    const float   *scales;        // [n][blocks]
    const uint8_t *zeros;         // packed like the data, each column from a new byte on; or NULL
    const float   *float_zeros;   // [n][blocks], or NULL
    const float   *column_scale;  // [n], or NULL
} BlockWeights;

size_t narrow_pack_bytes(const GemmShape *s, const Isa *isa);
void   narrow_pack(const GemmShape *s, const BlockWeights *w, const Isa *isa, void *out);
// 16-bit floats [n][k] (transposed) or [k][n].
void narrow_pack_half(const GemmShape *s, const uint16_t *w, bool transposed, const Isa *isa,
                      void *out);
