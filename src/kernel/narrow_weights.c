#include "kernel/narrow_weights.h"

#include <string.h>

size_t narrow_pack_bytes(const GemmShape *s, const Isa *isa) {
    return ceil_div(s->n, isa->lanes) * narrow_panel_bytes(s, isa->lanes);
}

static float zero_of(const GemmShape *s, const BlockWeights *w, uint32_t column, uint32_t block) {
    uint32_t bits = narrow_bits(s), blocks = narrow_blocks(s);
    if (w->float_zeros != NULL) return w->float_zeros[(size_t)column * blocks + block];
    if (w->zeros == NULL) return (float)(1U << (bits - 1));
    size_t row = ((size_t)blocks * bits + 7) / 8, bit = (size_t)block * bits;
    return (float)(w->zeros[column * row + bit / 8] >> bit % 8 & ((1U << bits) - 1));
}

// Scale, offset and words of one column in one block; `to` is the block's first vector at that
// lane.
static void pack_block(const GemmShape *s, const BlockWeights *w, uint32_t column, uint32_t block,
                       uint32_t lanes, uint32_t *to) {
    size_t bytes = (size_t)s->block * narrow_bits(s) / 8, blocks = narrow_blocks(s);
    float  scale = w->scales[column * blocks + block];
    if (w->column_scale != NULL) scale *= w->column_scale[column];
    float offset = -zero_of(s, w, column, block) * scale;
    memcpy(to, &scale, sizeof scale);
    to += lanes;
    if (s->zeros) {
        memcpy(to, &offset, sizeof offset);
        to += lanes;
    }
    const uint8_t *from = w->data + (column * blocks + block) * bytes;
    for (size_t i = 0; i < bytes; i += 4, to += lanes)
        *to = from[i] | (uint32_t)from[i + 1] << 8 | (uint32_t)from[i + 2] << 16 |
              (uint32_t)from[i + 3] << 24;
}

void narrow_pack(const GemmShape *s, const BlockWeights *w, const Isa *isa, void *out) {
    uint32_t lanes = isa->lanes;
    size_t   panel = narrow_panel_bytes(s, lanes), block = narrow_block_bytes(s, lanes);
    memset(out, 0, narrow_pack_bytes(s, isa));
    for (uint32_t j = 0; j < s->n; j++)
        for (uint32_t b = 0; b < narrow_blocks(s); b++) {
            char *at = (char *)out + j / lanes * panel + b * block;
            pack_block(s, w, j, b, lanes, (uint32_t *)(void *)at + j % lanes);
        }
}

void narrow_pack_half(const GemmShape *s, const uint16_t *w, bool transposed, const Isa *isa,
                      void *out) {
    uint32_t  lanes = isa->lanes;
    uint16_t *to = out;
    memset(out, 0, narrow_pack_bytes(s, isa));
    for (uint32_t j = 0; j < s->n; j++)
        for (uint32_t i = 0; i < s->k; i++)
            to[((size_t)(j / lanes) * s->k + i) * lanes + j % lanes] =
                w[transposed ? (size_t)j * s->k + i : (size_t)i * s->n + j];
}
