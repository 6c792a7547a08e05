// Sums as bytes where the instruction set packs: scaled, with what is added to them, and packed.
#pragma once

#include "kernel/vec/vec_int8.h"

#ifdef __AVX2__
// The bytes of the vectors q, plus zero. Packing saturates: as clipping before rounding does.
VEC_INLINE Vi packed(const Vi *q, const bool is_signed, Vi zero) {
#if VEC_LANES == 16
    const __m512i low =
        _mm512_adds_epi16(_mm512_packs_epi32((__m512i)q[0], (__m512i)q[1]), (__m512i)zero);
    const __m512i high =
        _mm512_adds_epi16(_mm512_packs_epi32((__m512i)q[2], (__m512i)q[3]), (__m512i)zero);
    const __m512i all = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return (Vi)_mm512_permutexvar_epi32(order, all);
#else
    const __m256i low =
        _mm256_adds_epi16(_mm256_packs_epi32((__m256i)q[0], (__m256i)q[1]), (__m256i)zero);
    const __m256i high =
        _mm256_adds_epi16(_mm256_packs_epi32((__m256i)q[2], (__m256i)q[3]), (__m256i)zero);
    const __m256i all = is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    return (Vi)_mm256_permutevar8x32_epi32(all, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
#endif
}

VEC_INLINE Vf fused_product(Vf a, Vf b, Vf c) {
#if VEC_LANES == 16
    return (Vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    return (Vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}

VEC_INLINE Vi clip_packed(Vi x, const bool is_signed, Vi lo, Vi hi) {
#if VEC_LANES == 16
    const __m512i a = (__m512i)x, l = (__m512i)lo, h = (__m512i)hi;
    return is_signed ? (Vi)_mm512_min_epi8(h, _mm512_max_epi8(l, a))
                     : (Vi)_mm512_min_epu8(h, _mm512_max_epu8(l, a));
#else
    const __m256i a = (__m256i)x, l = (__m256i)lo, h = (__m256i)hi;
    return is_signed ? (Vi)_mm256_min_epi8(h, _mm256_max_epi8(l, a))
                     : (Vi)_mm256_min_epu8(h, _mm256_max_epu8(l, a));
#endif
}

VEC_INLINE Vi all_bytes(float x) {
    return vi_set((int32_t)((uint32_t)(uint8_t)(int32_t)x * 0x01010101U));
}

// The first n bytes; whole vectors, where stores have no mask.
VEC_INLINE void store_some(uint8_t *to, Vi x, uint32_t n) {
#if VEC_LANES == 16
    _mm512_mask_storeu_epi8(to, UINT64_MAX >> (sizeof x - n), (__m512i)x);
#else
    (void)n;
    *(ViAny *)(void *)to = x;
#endif
}

// What becomes of a vector of sums: its scale keeps products within 32 bits.
VEC_INLINE Vi scaled_sums(const int32_t *sums, Vf scale) {
    return vf_to_int(vi_to_float(vi_load(sums)) * scale);
}

// The direct form of a residual, in registers.
typedef struct Direct {
    Vf lo, hi, own, from, offset;
    Vi flip;
} Direct;

VEC_INLINE Direct direct_of(const Int8Output *o) {
    const Int8Residual *r = o->residual;
    return (Direct){vf_set(o->lo),         vf_set(o->hi),     vf_set(r->own_ratio),
                    vf_set(r->from_ratio), vf_set(r->offset), vi_set(r->flip)};
}

// The same with n of the bytes at `added`.
VEC_INLINE Vi summed(const Direct *d, const int32_t *sums, Vf scale, const uint8_t *added,
                     uint32_t n) {
    const Vf x = vi_to_float(vi_load(sums)) * scale;
    const Vf own = vf_rint(vf_min(d->hi, vf_max(d->lo, x)));
    const Vf from = vi_to_float(vi_load_bytes(added, n) ^ d->flip);
    return vf_to_int(fused_product(own, d->own, fused_product(from, d->from, d->offset)));
}
#endif
