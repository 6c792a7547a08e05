// Vec: SIMD vector types and operations of one instruction set. Only files in kernel/vec, which are
// compiled once per instruction set, include it.
//
// The build sets VEC_ISA (baseline, avx2, avxvnni, avx512) and VEC_LANES (8, 8, 8, 16). External
// functions are named VEC(name), which appends the instruction set. -ffp-contract=fast fuses a * b
// + c to FMA.
#pragma once

#include <stdint.h>
#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#ifndef VEC_ISA  // for checks that compile headers alone
#define VEC_ISA   baseline
#define VEC_LANES 8
#endif

#define VEC_JOIN_(a, b) a##_##b
#define VEC_JOIN(a, b)  VEC_JOIN_(a, b)
#define VEC(name)       VEC_JOIN(name, VEC_ISA)

// An instruction set that has only byte kernels of its own takes the others from VEC_SHARES.
#ifndef VEC_SHARES
#define VEC_SHARES VEC_ISA
#endif
#define VEC_SHARED(name) VEC_JOIN(name, VEC_SHARES)

// Vectors of 256 bits with an instruction that adds four products of bytes in 32 bits.
#if VEC_LANES == 8 && (defined __AVXVNNI__ || defined __AVX512VNNI__)
#define VEC_VNNI 1
#else
#define VEC_VNNI 0
#endif

typedef float   Vf __attribute__((vector_size(VEC_LANES * 4)));
typedef int32_t Vi __attribute__((vector_size(VEC_LANES * 4)));
typedef float   VfAny __attribute__((vector_size(VEC_LANES * 4), aligned(4), may_alias));
typedef int32_t ViAny __attribute__((vector_size(VEC_LANES * 4), aligned(4), may_alias));

#define VEC_INLINE static inline __attribute__((always_inline, unused))

// Before loops over a register tile, which are fully unrolled, so that it stays in registers.
// Sanitizer builds do not unroll: the instrumented code would take minutes to compile.
#define VEC_PRAGMA(text) _Pragma(#text)
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define VEC_UNROLL(n) VEC_PRAGMA(clang loop unroll(disable))
#endif
#endif
#ifndef VEC_UNROLL
#define VEC_UNROLL(n) VEC_PRAGMA(GCC unroll n)
#endif

VEC_INLINE Vf   vf_load(const float *p) { return *(const VfAny *)p; }
VEC_INLINE void vf_store(float *p, Vf x) { *(VfAny *)p = x; }

VEC_INLINE Vf vf_set(float x) {
#if VEC_LANES == 16
    return (Vf){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#else
    return (Vf){x, x, x, x, x, x, x, x};
#endif
}

VEC_INLINE Vi vi_set(int32_t x) { return x - (Vi){0}; }

// Each lane of a mask is all ones or all zeros, as comparisons produce.
VEC_INLINE Vf                 vf_choose(Vi mask, Vf yes, Vf no) {
#if VEC_LANES == 8 && defined __AVX__
    return (Vf)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#else
    return (Vf)(((Vi)yes & mask) | ((Vi)no & ~mask));
#endif
}

// If either argument is NaN the result is the second one: pass the data second to propagate its
// NaNs.
VEC_INLINE Vf                  vf_max(Vf bound, Vf x) {
#if VEC_LANES == 16 && defined __AVX512F__
    return (Vf)_mm512_max_ps((__m512)bound, (__m512)x);
#elif VEC_LANES == 8 && defined __AVX__
    return (Vf)_mm256_max_ps((__m256)bound, (__m256)x);
#else
    return vf_choose((Vi)(bound > x), bound, x);
#endif
}

VEC_INLINE Vf                  vf_min(Vf bound, Vf x) {
#if VEC_LANES == 16 && defined __AVX512F__
    return (Vf)_mm512_min_ps((__m512)bound, (__m512)x);
#elif VEC_LANES == 8 && defined __AVX__
    return (Vf)_mm256_min_ps((__m256)bound, (__m256)x);
#else
    return vf_choose((Vi)(bound < x), bound, x);
#endif
}

// Mask of lanes [0, n).
VEC_INLINE Vi vi_before(uint32_t n) {
#if VEC_LANES == 16
    const Vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
    const Vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
#endif
    return (Vi)(lane < (int32_t)n);
}

VEC_INLINE Vf vf_load_some(const float *p, uint32_t n) {  // n < VEC_LANES; the rest is 0
#if VEC_LANES == 16 && defined __AVX512F__
    return (Vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif VEC_LANES == 8 && defined __AVX__
    return (Vf)_mm256_maskload_ps(p, (__m256i)vi_before(n));
#else
    float x[VEC_LANES] = {0};
    memcpy(x, p, n * sizeof *x);
    return vf_load(x);
#endif
}

VEC_INLINE void                vf_store_some(float *p, Vf v, uint32_t n) {
#if VEC_LANES == 16 && defined __AVX512F__
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif VEC_LANES == 8 && defined __AVX__
    _mm256_maskstore_ps(p, (__m256i)vi_before(n), (__m256)v);
#else
    float x[VEC_LANES];
    vf_store(x, v);
    memcpy(p, x, n * sizeof *x);
#endif
}

// As above with n up to VEC_LANES.
VEC_INLINE Vf vf_load_part(const float *p, uint32_t n) {
    return n == VEC_LANES ? vf_load(p) : vf_load_some(p, n);
}

VEC_INLINE void vf_store_part(float *p, Vf v, uint32_t n) {
    if (n == VEC_LANES)
        vf_store(p, v);
    else
        vf_store_some(p, v, n);
}
