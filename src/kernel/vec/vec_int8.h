// Register tiles of byte products, and the stores of their sums; shared by the int8 kernels of one
// instruction set.
#pragma once

#include "kernel/int8_conv.h"
#include "kernel/vec/vec_int.h"
#include "kernel/vec/vec_math.h"

// sums[r][v] = start[v] + the products of row r with the weights of vector v. Depth is n_terms runs
// of term_quads quads: run t of row r begins at rows[r] + terms[t].
typedef struct Int8Tile {
    const uint8_t *const *rows;
    const int32_t        *terms, *quad_at;  // byte offsets of runs, and of single quads
    uint32_t              n_terms, term_quads;
    const int8_t         *weights;  // vector v: weights + v * weight_stride
    size_t                weight_stride;
    const int8_t         *extra_quads;
    const uint32_t       *extra_index, *extra_start;  // extra_start: of the tile's first vector
    const int32_t        *start;                      // [vecs][lanes]
    int32_t              *sums;                       // [rows][vecs][lanes]
} Int8Tile;

typedef void Int8TileFn(const Int8Tile *t);

Int8TileFn *VEC(int8_tile_find)(uint32_t rows, uint32_t vecs);

#if VEC_VNNI
// sum += the four products of each lane: unsigned bytes of x, signed bytes of w.
VEC_INLINE __m256i dot_quads(__m256i sum, __m256i x, __m256i w) {
#ifdef __AVXVNNI__
    return _mm256_dpbusd_avx_epi32(sum, x, w);
#else  // the same instruction in the encoding of AVX-512
    return _mm256_dpbusd_epi32(sum, x, w);
#endif
}
#endif

VEC_INLINE Vi   vi_load(const int32_t *p) { return *(const ViAny *)p; }
VEC_INLINE void vi_store(int32_t *p, Vi x) { *(ViAny *)p = x; }

// Rounds half to even; |x| < 2^31.
VEC_INLINE Vi                  vf_to_int(Vf x) {
#if VEC_LANES == 16 && defined __AVX512F__
    return (Vi)_mm512_cvtps_epi32((__m512)x);
#elif VEC_LANES == 8 && defined __AVX__
    return (Vi)_mm256_cvtps_epi32((__m256)x);
#else
    return __builtin_convertvector(vf_rint(x), Vi);
#endif
}

VEC_INLINE Vf vi_to_float(Vi x) { return __builtin_convertvector(x, Vf); }

// Stores the low byte of the first n lanes. Lanes are from -128 to 255.
VEC_INLINE void                vi_store_bytes(uint8_t *to, Vi x, uint32_t n) {
#if VEC_LANES == 16 && defined __AVX512F__
    const __m128i bytes = _mm512_cvtepi32_epi8((__m512i)x);
    if (n == VEC_LANES)
        _mm_storeu_si128((__m128i *)(void *)to, bytes);
    else
        _mm_mask_storeu_epi8(to, (__mmask16)((1u << n) - 1), bytes);
#elif VEC_LANES == 8 && defined __AVX2__
    const __m256i order =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i picked = _mm256_shuffle_epi8((__m256i)x, order);
    const __m128i bytes =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(picked), _mm256_extracti128_si256(picked, 1));
    if (n == VEC_LANES) {
        _mm_storel_epi64((__m128i *)(void *)to, bytes);
        return;
    }
    const uint64_t all = (uint64_t)_mm_cvtsi128_si64(bytes);
    memcpy(to, &all, n);
#else
    for (uint32_t i = 0; i < n; i++) to[i] = (uint8_t)x[i];
#endif
}

// The first n bytes as lanes; the others are 0.
VEC_INLINE Vi                 vi_load_bytes(const uint8_t *from, uint32_t n) {
#if VEC_LANES == 8 && defined __AVX2__
    uint64_t all = 0;
    if (n == VEC_LANES)
        memcpy(&all, from, sizeof all);
    else
        memcpy(&all, from, n);
    return (Vi)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)all));
#elif VEC_LANES == 16 && defined __AVX512F__
    if (n == VEC_LANES)
        return (Vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
    const __mmask16 some = (__mmask16)((1u << n) - 1);
    return (Vi)_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(some, from));
#else
    Vi x = {0};
    for (uint32_t i = 0; i < n; i++) x[i] = from[i];
    return x;
#endif
}

// round(x) clipped to [lo, hi], plus zero. The bounds are integers, so the order of rounding and
// clipping does not matter.
VEC_INLINE Vi vf_quantize(Vf x, Vf lo, Vf hi, Vi zero) {
    return vf_to_int(vf_min(hi, vf_max(lo, x))) + zero;
}
