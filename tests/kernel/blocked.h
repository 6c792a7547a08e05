// Exactly sized float arrays in plain and blocked layout, for kernel tests.
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/tensor.h"
#include "tests/kernel/arrays.h"

static inline float *blocked_new(size_t n) {
    void *p = NULL;
    assert_int_equal(posix_memalign(&p, TENSOR_ALIGN, n * sizeof(float)), 0);
    for (size_t i = 0; i < n; i++) ((float *)p)[i] = -12345;
    return p;
}

static inline float *blocked_random(size_t n, Rng *r) {
    float *x = blocked_new(n);
    for (size_t i = 0; i < n; i++) x[i] = rng_unit(r) * 2 - 1;
    return x;
}

static inline size_t blocked_count(size_t n, size_t channels, size_t pixels, size_t lanes) {
    return n * ((channels + lanes - 1) / lanes) * lanes * pixels;
}

// Blocked position of element i of plain [n][channels][pixels].
static inline size_t blocked_at(size_t channels, size_t pixels, size_t lanes, size_t i) {
    size_t c = i / pixels % channels, blocks = (channels + lanes - 1) / lanes;
    return ((i / pixels / channels * blocks + c / lanes) * pixels + i % pixels) * lanes + c % lanes;
}

// A blocked copy; lanes beyond the last channel hold NaN, which no result may contain.
static inline float *blocked_from(const float *plain, size_t n, size_t channels, size_t pixels,
                                  size_t lanes) {
    size_t count = blocked_count(n, channels, pixels, lanes);
    float *x = blocked_new(count);
    for (size_t i = 0; i < count; i++) x[i] = NAN;
    for (size_t i = 0; i < n * channels * pixels; i++)
        x[blocked_at(channels, pixels, lanes, i)] = plain[i];
    return x;
}

// Checks that blocked `got` equals plain `want`.
static inline void blocked_equal(const float *got, const float *want, size_t n, size_t channels,
                                 size_t pixels, size_t lanes, double tolerance) {
    for (size_t i = 0; i < n * channels * pixels; i++) {
        double g = (double)got[blocked_at(channels, pixels, lanes, i)], w = (double)want[i];
        if (isnan(g) && isnan(w)) continue;
        if (g != w && !(fabs(g - w) <= tolerance * (1 + fabs(w))))
            fail_msg("number %zu is %.9g, not %.9g", i, g, w);
    }
}
