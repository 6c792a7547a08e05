#include "kernel/narrow_rounding.h"

#include <math.h>

#include "base/fp.h"

enum { BLOCK_MOST = 128, PER_WORD = 4, ZERO = 128, MOST = 127 };

uint32_t narrow_block_size(uint32_t k) {
    uint32_t blocks = max_u32(ceil_div(k, BLOCK_MOST), 1);
    return max_u32(round_up(ceil_div(k, blocks), PER_WORD), PER_WORD);
}

static float weight_at(const GemmShape *s, const FloatWeights *w, uint32_t column, uint32_t i) {
    size_t at = w->transposed ? (size_t)column * s->k + i : (size_t)i * s->n + column;
    return w->at[at] * w->alpha;
}

float narrow_largest(const FloatWeights *w, size_t count) {
    float most = 0;
    for (size_t i = 0; i < count; i++) {
        float x = fabsf(w->at[i] * w->alpha);
        if (!isfinite(x)) return x;
        if (x > most) most = x;
    }
    return most;
}

// Half away from zero: independent of the thread's rounding mode.
static uint8_t byte_of(float x, float scale) {
    float q = scale > 0 ? roundf(x / scale) : 0;
    return (uint8_t)(ZERO + (int)fminf(fmaxf(q, -MOST), MOST));
}

static void round_block(const GemmShape *s, const FloatWeights *w, uint32_t column, uint32_t block,
                        const RoundedWeights *out) {
    uint32_t from = block * s->block, end = min_u32(from + s->block, s->k);
    uint8_t *to = out->bytes + column * narrow_depth(s);
    float    most = 0;
    for (uint32_t i = from; i < end; i++) most = fmaxf(most, fabsf(weight_at(s, w, column, i)));
    float scale = most / MOST;
    out->scales[(size_t)column * narrow_blocks(s) + block] = scale;
    for (uint32_t i = from; i < end; i++) to[i] = byte_of(weight_at(s, w, column, i), scale);
    for (uint32_t i = end; i < from + s->block; i++) to[i] = ZERO;
}

RoundedWeights narrow_round(const GemmShape *s, const FloatWeights *w, Arena *a) {
    RoundedWeights r = {0};
    size_t         count = (size_t)s->n * s->k;
    if (s->weights == GEMM_F16) {
        r.half = arena_new(a, uint16_t, count);
        for (size_t i = 0; i < count; i++) r.half[i] = half_from_f32(w->at[i] * w->alpha);
        return r;
    }
    r.bytes = arena_new(a, uint8_t, s->n * narrow_depth(s));
    r.scales = arena_new(a, float, (size_t)s->n *narrow_blocks(s));
    for (uint32_t b = 0; b < narrow_blocks(s); b++)
        for (uint32_t j = 0; j < s->n; j++) round_block(s, w, j, b, &r);
    return r;
}

static double rounded_at(const GemmShape *s, const FloatWeights *w, const RoundedWeights *r,
                         uint32_t column, uint32_t i) {
    if (s->weights == GEMM_F16)
        return (double)half_to_f32(
            r->half[w->transposed ? (size_t)column * s->k + i : (size_t)i * s->n + column]);
    float scale = r->scales[(size_t)column * narrow_blocks(s) + i / s->block];
    return ((double)r->bytes[column * narrow_depth(s) + i] - ZERO) * (double)scale;
}

NarrowError narrow_error(const GemmShape *s, const FloatWeights *w, const RoundedWeights *r) {
    double most = 0, most_off = 0, squares = 0, squares_off = 0;
    for (uint32_t i = 0; i < s->k; i++)
        for (uint32_t j = 0; j < s->n; j++) {
            double x = (double)weight_at(s, w, j, i), off = rounded_at(s, w, r, j, i) - x;
            most = fmax(most, fabs(x));
            most_off = fmax(most_off, fabs(off));
            squares += x * x;
            squares_off += off * off;
        }
    if (most == 0) return (NarrowError){0};
    return (NarrowError){most_off / most, sqrt(squares_off / squares)};
}

void narrow_pack_rounded(const GemmShape *s, const FloatWeights *w, const RoundedWeights *r,
                         const Isa *isa, void *out) {
    BlockWeights blocks = {.data = r->bytes, .scales = r->scales};
    if (s->weights == GEMM_F16)
        narrow_pack_half(s, r->half, w->transposed, isa, out);
    else
        narrow_pack(s, &blocks, isa, out);
}
