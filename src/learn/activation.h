// Activation functions (relu, tanh, sigmoid, softplus, softmax) with their gradients.
//
// Bitwise reproducible on every machine: exp, log and tanh are polynomials, exact to 1e-6
// (repro_*). Backward takes the output y of forward and computes dx from dy; both may work in
// place.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum Activation {
    ACTIVATION_NONE,
    ACTIVATION_RELU,
    ACTIVATION_TANH,
    ACTIVATION_SIGMOID,
    ACTIVATION_SOFTPLUS
} Activation;

void activation_forward(Activation act, size_t n, const float *x, float *y);
void activation_backward(Activation act, size_t n, const float *y, const float *dy, float *dx);

// Softmax of each row. len: only the first len[row] columns take part, the others become 0; NULL:
// all. A row of length 0 becomes 0.
void activation_softmax(size_t rows, size_t cols, const uint32_t *len, const float *x, float *y);
void activation_softmax_backward(size_t rows, size_t cols, const float *y, const float *dy,
                                 float *dx);

static inline float repro_float_from_bits(int32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline int32_t repro_bits_of_float(float f) {
    int32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

// 2^k e^r with k the integer nearest to x / ln 2. Clamped at +-87.
static inline float repro_exp(float x) {
    const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    x = x < -87.0f ? -87.0f : x;
    x = x > 87.0f ? 87.0f : x;
    float t = x * 1.44269504f + shift, k = t - shift;
    float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 0.00138144648f;
    p = p * r + 0.00836878062f;
    p = p * r + 0.0416683943f;
    p = p * r + 0.166665201f;
    p = p * r + 0.499999934f;
    p = p * r * r + r + 1.0f;
    return p * repro_float_from_bits(
                   (int32_t)((uint32_t)(repro_bits_of_float(t) - repro_bits_of_float(shift) + 127)
                             << 23));
}

static inline float repro_sigmoid(float x) { return 1.0f / (1.0f + repro_exp(0.0f - x)); }

// A polynomial near 0, where 1 - 2 / (e^2x + 1) would cancel.
static inline float repro_tanh(float x) {
    float   u = x * x, p = -0.00566078046f;
    int32_t size = repro_bits_of_float(x) & INT32_MAX;
    p = p * u + 0.0206019992f;
    p = p * u - 0.053729227f;
    p = p * u + 0.133313289f;
    p = p * u - 0.333332783f;
    float near = x * u * p + x;
    float far = 1.0f - 2.0f / (repro_exp(2.0f * x) + 1.0f);
    return size < repro_bits_of_float(0.625f) ? near : far;
}

// Natural logarithm for x > 0: x = 2^k m with m in [0.7, 1.4), ln m = 2 artanh(s).
static inline float repro_log(float x) {
    int32_t bits = repro_bits_of_float(x) - 0x3f3504f3, k = bits >> 23;
    float   m = repro_float_from_bits((bits & 0x7fffff) + 0x3f3504f3), s = (m - 1.0f) / (m + 1.0f),
          u = s * s;
    float p = 1.0f / 9;
    p = p * u + 1.0f / 7;
    p = p * u + 1.0f / 5;
    p = p * u + 1.0f / 3;
    p = p * u + 1.0f;
    return (float)k * 0.693147181f + 2.0f * s * p;
}
