#include "kernel/int8_window.h"

#include <string.h>

#include "kernel/blocking.h"

static uint32_t pairs_of(const ConvShape *s) { return ceil_div(s->kh * s->kw, 2); }

static uint32_t quads_of(const ConvShape *s) { return ceil_div(s->kh * s->kw, INT8_QUAD); }

static size_t pair_bytes(const ConvShape *s) {
    return align_bytes((size_t)round_up(s->ic, 2 * INT8_DEPTHWISE_BLOCK) * pairs_of(s) * 2 *
                       sizeof(int16_t));
}

size_t int8_depthwise_pack_bytes(const Int8Shape *s) {
    return pair_bytes(&s->conv) + (size_t)s->conv.ic / INT8_DEPTHWISE_WIDE * INT8_DEPTHWISE_WIDE *
                                      quads_of(&s->conv) * INT8_QUAD;
}

static void pack_pairs(const ConvShape *s, const int16_t *w, int16_t *out) {
    uint32_t taps = s->kh * s->kw, pairs = pairs_of(s);
    memset(out, 0, pair_bytes(s));
    for (uint32_t c = 0; c < s->ic; c++)
        for (uint32_t t = 0; t < taps; t++) {
            size_t block = (size_t)(c / INT8_DEPTHWISE_BLOCK) * pairs + t / 2;
            out[(block * INT8_DEPTHWISE_BLOCK + c % INT8_DEPTHWISE_BLOCK) * 2 + t % 2] =
                w[(size_t)c * taps + t];
        }
}

// In the order in which the kernel interleaves the bytes of four taps: group i of four has channels
// 4 i to 4 i + 3, then the same of the upper 16.
static void pack_quads(const ConvShape *s, const int16_t *w, int8_t *out) {
    uint32_t taps = s->kh * s->kw, quads = quads_of(s);
    uint32_t wide = s->ic / INT8_DEPTHWISE_WIDE * INT8_DEPTHWISE_WIDE;
    for (uint32_t c = 0; c < wide; c++)
        for (uint32_t t = 0; t < quads * INT8_QUAD; t++) {
            uint32_t in = c % INT8_DEPTHWISE_WIDE, half = in / 16, group = in % 16 / 4;
            size_t   block = (size_t)(c / INT8_DEPTHWISE_WIDE) * quads + t / INT8_QUAD;
            size_t   at = ((block * 4 + group) * 2 + half) * 16 + in % 4 * 4 + t % INT8_QUAD;
            out[at] = t < taps ? (int8_t)w[(size_t)c * taps + t] : 0;
        }
}

static bool are_bytes(const ConvShape *s, const int16_t *w) {
    for (size_t i = 0; i < (size_t)s->ic * s->kh * s->kw; i++)
        if (w[i] < -128 || w[i] > 127) return false;
    return true;
}

Int8Taps int8_depthwise_pack(const Int8Shape *s, const Isa *isa, const int16_t *w, void *memory) {
    int16_t   *pairs = memory;
    int8_t    *quads = (int8_t *)memory + pair_bytes(&s->conv);
    Int8Traits t = {0};
    isa->int8_traits(&t);
    pack_pairs(&s->conv, w, pairs);
    if (s->x_signed || !t.adds_quads || !are_bytes(&s->conv, w)) return (Int8Taps){pairs, NULL};
    pack_quads(&s->conv, w, quads);
    return (Int8Taps){pairs, quads};
}

uint32_t int8_depthwise_tasks(const Int8Shape *s) {
    return checked_tasks((uint64_t)s->conv.n * s->conv.oh);
}

// Pointers to the taps of a pixel, and a pixel of padding.
size_t int8_depthwise_scratch(const Int8Shape *s) {
    return align_bytes((size_t)int8_depthwise_slots(&s->conv) * sizeof(void *)) +
           align_bytes((size_t)s->x_pitch + INT8_DEPTHWISE_WIDE);
}

uint32_t int8_pool_tasks(const Int8Pool *p) {
    return checked_tasks((uint64_t)p->pool.shape.n * p->pool.shape.oh);
}
