// VecMath: vectorised math functions (exp, log, tanh, erf, ...) and lane reductions; NaN
// propagates.
#pragma once

#include <math.h>

#include "kernel/vec/vec.h"

typedef uint32_t Vu __attribute__((vector_size(VEC_LANES * 4)));

// Evaluates expr per lane: a libm call each where the hardware has no instruction.
#define VEC_EACH_LANE(result, expr)                                                                \
    do {                                                                                           \
        for (int lane = 0; lane < VEC_LANES; lane++) (result)[lane] = (expr);                      \
    } while (0)

VEC_INLINE Vf vf_abs(Vf x) { return (Vf)((Vi)x & vi_set(INT32_MAX)); }

// Magnitude of the first argument, sign of the second.
VEC_INLINE Vf vf_copysign(Vf size, Vf sign) {
    const Vi top = vi_set(INT32_MIN);
    return (Vf)(((Vi)size & ~top) | ((Vi)sign & top));
}

VEC_INLINE Vf vf_clamp(Vf x, float lo, float hi) {
    return vf_min(vf_set(hi), vf_max(vf_set(lo), x));
}

VEC_INLINE Vf                  vf_sqrt(Vf x) {
#if VEC_LANES == 16 && defined __AVX512F__
    return (Vf)_mm512_sqrt_ps((__m512)x);
#elif VEC_LANES == 8 && defined __AVX__
    return (Vf)_mm256_sqrt_ps((__m256)x);
#else
    Vf y = x;
    VEC_EACH_LANE(y, sqrtf(x[lane]));
    return y;
#endif
}

// Rounds to the nearest integer, halves to even.
VEC_INLINE Vf                  vf_rint(Vf x) {
#if VEC_LANES == 16 && defined __AVX512F__
    return (Vf)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif VEC_LANES == 8 && defined __AVX__
    return (Vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    // Floats from 2^23 on have no fraction bits: adding and subtracting 2^23 rounds.
    const Vf shift = vf_set(0x1p23f), size = vf_abs(x);
    const Vf whole = vf_copysign((size + shift) - shift, x);
    return vf_choose((Vi)(size < shift), whole, x);
#endif
}

VEC_INLINE Vf vf_floor(Vf x) {
    const Vf near = vf_rint(x);
    return vf_choose((Vi)(near > x), near - 1.0f, near);
}

VEC_INLINE Vf vf_ceil(Vf x) {
    const Vf near = vf_rint(x);
    return vf_choose((Vi)(near < x), near + 1.0f, near);
}

// e^x = 2^n * e^r with |r| <= ln(2) / 2. Polynomials in this file minimise the relative error.
typedef struct VecPower {
    Vf r, scale;  // scale is 2^n
} VecPower;

// Adding the shift rounds to an integer and leaves n + 127, the exponent bits of 2^n, in the low
// bits, without a float-to-int conversion. n is -127 (2^n becomes 0) to 127; x is at least -88.
VEC_INLINE VecPower vec_power(Vf x) {
    const Vf shift = vf_set(0x1.8p23f + 127);
    const Vf bits = vf_min(shift + 127.0f, x * 0x1.715476p0f + shift), n = bits - shift;
    const Vf r = (x - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;
    return (VecPower){r, (Vf)((Vu)bits << 23)};
}

// Error: 2 ulp up to |x| = 30, 4 ulp beyond, 4 digits above 88.4; infinity is exact. Results below
// the smallest normal float are 0.
VEC_INLINE Vf vf_exp(Vf x) {
    const VecPower p = vec_power(vf_max(vf_set(-88.0f), x));
    const Vf       r = p.r;
    const Vf       rest = ((r * 8.290292634e-3f + 4.189798213e-2f) * r + 1.66676368e-1f) * r;
    const Vf       e = ((rest + 4.999914912e-1f) * r + 9.999997069e-1f) * r;
    return e * p.scale + p.scale;
}

// e^x - 1, accurate near 0.
VEC_INLINE Vf vf_expm1(Vf x) {
    const VecPower p = vec_power(vf_max(vf_set(-88.0f), x));
    const Vf       r = p.r;
    const Vf       rest = ((r * 1.388886879e-3f + 8.369075697e-3f) * r + 4.166713646e-2f) * r;
    const Vf       e = (((rest + 1.666650616e-1f) * r + 4.999999812e-1f) * r + 1.0f) * r;
    return e * p.scale + (p.scale - 1.0f);
}

// log((1 + s) / (1 - s)) for |s| <= 1/3.
VEC_INLINE Vf vec_log_ratio(Vf s) {
    const Vf t = s * s;
    const Vf rest =
        ((t * 2.802468273e-1f + 2.799908557e-1f) * t + 4.002170342e-1f) * t + 6.666641303e-1f;
    return (s * t) * rest + (s + s);
}

// log(1 + x) for x in [0, 1], accurate near 0.
VEC_INLINE Vf vf_log1p_unit(Vf x) { return vec_log_ratio(x / (x + 2.0f)); }

VEC_INLINE Vf vf_log(Vf x) {
    const Vi tiny = (Vi)(x < 0x1p-126f);
    const Vu bits = (Vu)vf_choose(tiny, x * 0x1p23f, x);
    const Vi power = (Vi)(bits - 0x3f3504f3u) >> 23;  // the remaining factor m is near 1
    const Vf m = (Vf)(bits - ((Vu)power << 23));
    const Vf n = __builtin_convertvector(power - (tiny & 23), Vf);
    const Vf near = vec_log_ratio((m - 1.0f) / (m + 1.0f));
    const Vf y = n * 0x1.63p-1f + (near + n * -0x1.bd0106p-13f);
    const Vf odd = vf_choose((Vi)(x == 0.0f), vf_set(-INFINITY), vf_set(NAN));
    return vf_choose((Vi)(x > 0.0f), vf_choose((Vi)(x == INFINITY), x, y), odd);
}

VEC_INLINE Vf vf_tanh(Vf x) {
    const Vf e = vf_expm1(vf_min(vf_set(19), x + x));
    return e / (e + 2.0f);
}

VEC_INLINE Vf vf_sigmoid(Vf x) { return 1.0f / (1.0f + vf_exp(-x)); }

// erf(x / sqrt(2)), as a ratio of polynomials in x^2. At the bounds it is exactly -1 and 1.
VEC_INLINE Vf vf_erf_root(Vf x) {
    const Vf v = vf_clamp(x, -5.541f, 5.541f), t = v * v;
    const Vf p = ((t * 4.499677281e-8f + 1.258497765e-5f) * t + 3.349574946e-4f) * t;
    const Vf over = ((p + 9.337357732e-3f) * t + 6.754720192e-2f) * t + 7.97884545e-1f;
    const Vf q = ((t * 1.185734085e-6f + 7.294649045e-5f) * t + 1.87720224e-3f) * t;
    const Vf under = ((q + 2.859082812e-2f) * t + 2.513242146e-1f) * t + 1.0f;
    return v * over / under;
}

VEC_INLINE Vf vf_erf(Vf x) { return vf_erf_root(x * 0x1.6a09e6p0f); }

// log(1 + e^x), accurate for large negative x too.
VEC_INLINE Vf vf_softplus(Vf x) { return vf_max(vf_set(0), x) + vf_log1p_unit(vf_exp(-vf_abs(x))); }

VEC_INLINE Vf vf_pow(Vf x, Vf y) {
    Vf z = x;
    VEC_EACH_LANE(z, powf(x[lane], y[lane]));
    return z;
}

// Reductions across the lanes of one vector.
#if VEC_LANES == 16
#define VEC_HALF(x)                                                                                \
    __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define VEC_FOURS(x)                                                                               \
    __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define VEC_TWOS(x)                                                                                \
    __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define VEC_ONES(x)                                                                                \
    __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#else
#define VEC_FOURS(x) __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3)
#define VEC_TWOS(x)  __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5)
#define VEC_ONES(x)  __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6)
#endif

VEC_INLINE float vf_sum(Vf x) {
#if VEC_LANES == 16
    x = x + VEC_HALF(x);
#endif
    x = x + VEC_FOURS(x);
    x = x + VEC_TWOS(x);
    return (x + VEC_ONES(x))[0];
}

VEC_INLINE float vf_top(Vf x) {
#if VEC_LANES == 16
    x = vf_max(x, VEC_HALF(x));
#endif
    x = vf_max(x, VEC_FOURS(x));
    x = vf_max(x, VEC_TWOS(x));
    return vf_max(x, VEC_ONES(x))[0];
}
