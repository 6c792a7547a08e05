// VecHalf: vectors of float16 and bfloat16 numbers in memory, as vectors of floats.
#pragma once

#include "kernel/vec/vec_math.h"

typedef int16_t Vh __attribute__((vector_size(VEC_LANES * 2), aligned(2), may_alias));

VEC_INLINE Vf vf_load_bf16(const uint16_t *p) {
    return (Vf)(__builtin_convertvector(*(const Vh *)p, Vi) << 16);
}

VEC_INLINE Vf                  vf_load_f16(const uint16_t *p) {
#if VEC_LANES == 16 && defined __AVX512F__
    return (Vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif VEC_LANES == 8 && defined __F16C__
    return (Vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    // Exponent and mantissa at their places in a float, scaled by the difference of the exponents'
    // biases. Subnormal numbers are whole multiples of 2^-24: as floats they would be subnormal
    // before they are scaled, and threads flush those to 0. Infinity and NaN have exponent 31.
    const Vi h = __builtin_convertvector(*(const Vh *)p, Vi), size = h & 0x7fff;
    const Vf scaled = (Vf)(size << 13) * 0x1p112F;
    const Vf odd = (Vf)((size << 13) | 0x7f800000);
    const Vf least = __builtin_convertvector(size, Vf) * 0x1p-24F;
    const Vf small = vf_choose((Vi)(size < 0x0400), least, scaled);
    const Vf y = vf_choose((Vi)(size >= 0x7c00), odd, small);
    return (Vf)((Vi)y | (h & INT32_MIN));
#endif
}

// Rounds to the nearest number that keeps all but the last `bits` of the mantissa, halves to even.
VEC_INLINE Vf vf_cut_mantissa(Vf size, const int bits) {
    const Vi u = (Vi)size, odd = (u >> bits) & 1, below = vi_set((1 << (bits - 1)) - 1);
    return (Vf)((u + odd + below) & vi_set(-(1 << bits)));
}

// The nearest bfloat16, halves to even.
VEC_INLINE Vf vf_round_bf16(Vf x) {
    const Vf size = vf_abs(x), y = vf_copysign(vf_cut_mantissa(size, 16), x);
    return vf_choose((Vi)(x == x), y, x);
}

// The nearest float16, halves to even.
VEC_INLINE Vf                  vf_round_f16(Vf x) {
#if VEC_LANES == 16 && defined __AVX512F__
    return (Vf)_mm512_cvtph_ps(_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif VEC_LANES == 8 && defined __F16C__
    return (Vf)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#else
    // Subnormal numbers are multiples of 2^-24, which is the last place of floats from 0.5 on.
    const Vf size = vf_abs(x), small = (size + 0.5F) - 0.5F;
    Vf       y = vf_choose((Vi)(size < 0x1p-14F), small, vf_cut_mantissa(size, 13));
    y = vf_choose((Vi)(size >= 65520.0F), vf_set(INFINITY), y);
    return vf_choose((Vi)(x == x), vf_copysign(y, x), x);
#endif
}

VEC_INLINE void vf_store_bf16(uint16_t *p, Vf x) {
    const Vi y = (Vi)vf_round_bf16(x);
    *(Vh *)p = __builtin_convertvector((y >> 16) | ((Vi)(x != x) & 0x40), Vh);
}

VEC_INLINE void                vf_store_f16(uint16_t *p, Vf x) {
#if VEC_LANES == 16 && defined __AVX512F__
    _mm256_storeu_si256((__m256i *)(void *)p,
                        _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT));
#elif VEC_LANES == 8 && defined __F16C__
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
#else
    const Vf y = vf_round_f16(x), size = vf_abs(y);
    // The scale moves the exponent to its place in a float16; infinity and NaN overflow it.
    Vi       h = (Vi)(size * 0x1p-112F) >> 13;
    const Vi least = __builtin_convertvector(vf_min(size, vf_set(1)) * 0x1p24F, Vi);
    h = (Vi)vf_choose((Vi)(size < 0x1p-14F), (Vf)least, (Vf)h);
    h = (Vi)vf_choose((Vi)(size >= 65536.0F), (Vf)vi_set(0x7c00), (Vf)h);
    h = (Vi)vf_choose((Vi)(x != x), (Vf)vi_set(0x7e00), (Vf)h);
    h |= ((Vi)x >> 16) & 0x8000;
    *(Vh *)p = __builtin_convertvector(h, Vh);
#endif
}
