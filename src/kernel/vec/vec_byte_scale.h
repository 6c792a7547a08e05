// Vectors of bytes as the floats that they stand for, floats as bytes, and the sum of two byte
// arrays; shared by the kernels of one instruction set.
#pragma once

#include "kernel/quantize.h"
#include "kernel/vec/vec_int8.h"

typedef struct ToBytes {
    Vf scale, lo, hi;
    Vi zero;
} ToBytes;

VEC_INLINE ToBytes to_bytes(const ByteScale *s) {
    return (ToBytes){vf_set(s->scale), vf_set(byte_lowest(s)), vf_set(byte_highest(s)),
                     vi_set(s->zero)};
}

VEC_INLINE Vi quantized(const ToBytes *t, Vf x) {
    return vf_quantize(x / t->scale, t->lo, t->hi, t->zero);
}

// Bytes as integers minus their zero point.
VEC_INLINE Vi centred(const uint8_t *x, uint32_t n, const bool is_signed, Vi zero) {
    const Vi raw = vi_load_bytes(x, n);
    return (is_signed ? (raw << 24) >> 24 : raw) - zero;
}

// Keeps a product apart from the sum that follows: fused, it would not be rounded.
#if defined __AVX__
#define ROUNDED(x) __asm__("" : "+v"(x))
#else
#define ROUNDED(x) __asm__("" : "+m"(x))
#endif

VEC_INLINE Vf widened(const ByteScale *s, const uint8_t *x, uint32_t n) {
    Vf v = vi_to_float(centred(x, n, s->is_signed, vi_set(s->zero))) * vf_set(s->scale);
    ROUNDED(v);
    return v;
}

// y = to(clip(a(x) + b(w), least, most)); y may be x or w.
typedef struct ByteSum {
    ByteScale a, b, to;
    float     least, most;
} ByteSum;

VEC_INLINE void sum_span(const ByteSum *s, const uint8_t *x, const uint8_t *w, size_t count,
                         uint8_t *y) {
    const ToBytes   t = to_bytes(&s->to);
    const ByteScale a = s->a, b = s->b;
    const Vf        least = vf_set(s->least), most = vf_set(s->most);
    for (size_t i = 0; i < count; i += VEC_LANES) {
        const uint32_t n = (uint32_t)(count - i < VEC_LANES ? count - i : VEC_LANES);
        const Vf       sum = widened(&a, x + i, n) + widened(&b, w + i, n);
        vi_store_bytes(y + i, quantized(&t, vf_min(most, vf_max(least, sum))), n);
    }
}
