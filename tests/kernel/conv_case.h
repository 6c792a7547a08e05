// ConvCase: a convolution with random data, the reference result, and blocked copies.
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/rng.h"
#include "kernel/conv.h"
#include "kernel/ref/ref_conv.h"

// Tables of shapes omit the depth where there is none.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

typedef struct ConvCase {
    ConvShape shape;
    float    *x, *w, *bias, *y;  // plain; y is the reference result: sums and bias
} ConvCase;

static inline float *conv_case_numbers(Rng *r, size_t n) {
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = rng_unit(r) - 0.5F;
    return x;
}

// Exactly n floats at a 64-byte boundary, so that the sanitizer catches an access past the end.
static inline float *conv_case_aligned(size_t n) {
    void *x = NULL;
    assert_int_equal(posix_memalign(&x, 64, n > 0 ? n * sizeof(float) : 1), 0);
    return x;
}

// Numbers of one channel of x, of y, and of a filter for one input channel.
static inline size_t conv_case_in(const ConvShape *s) {
    return (size_t)(s->kd > 0 ? s->id : 1) * s->ih * s->iw;
}

static inline size_t conv_case_out(const ConvShape *s) {
    return (size_t)(s->kd > 0 ? s->od : 1) * s->oh * s->ow;
}

static inline size_t conv_case_taps(const ConvShape *s) {
    return (size_t)(s->kd > 0 ? s->kd : 1) * s->kh * s->kw;
}

// In three dimensions; a depth of 1 if there is none.
static inline void conv_case_answer(ConvCase *c) {
    const ConvShape *s = &c->shape;
    const bool       deep = s->kd > 0;
    const uint32_t   kd = deep ? s->kd : 1, id = deep ? s->id : 1, od = deep ? s->od : 1;
    RefConv          p = {.group = s->groups,
                          .window = {.rank = 3,
                                     .in = {id, s->ih, s->iw},
                                     .out = {od, s->oh, s->ow},
                                     .kernel = {kd, s->kh, s->kw},
                                     .stride = {deep ? s->sd : 1, s->sh, s->sw},
                                     .dilation = {deep ? s->dd : 1, s->dh, s->dw},
                                     .pad = {s->pf, s->pt, s->pl}}};
    Tensor x = {.dtype = DT_F32, .rank = 5, .dims = {s->n, s->ic, id, s->ih, s->iw}, .data = c->x};
    Tensor w = {.dtype = DT_F32,
                .rank = 5,
                .dims = {s->oc, s->ic / s->groups, kd, s->kh, s->kw},
                .data = c->w};
    Tensor b = {.dtype = DT_F32, .rank = 1, .dims = {s->oc}, .data = c->bias};
    Tensor y = {.dtype = DT_F32, .rank = 5, .dims = {s->n, s->oc, od, s->oh, s->ow}, .data = c->y};
    Arena  a = {0};
    assert_int_equal(arena_init(&a, (size_t)1 << 32), ERR_OK);
    assert_int_equal(ref_conv(&p, &x, &w, &b, &y, &a), ERR_OK);
    arena_finish(&a);
}

// Without the reference result.
static inline ConvCase conv_case_numbered(const ConvShape *s, Rng *r) {
    ConvCase c = {.shape = *s};
    c.x = conv_case_numbers(r, s->n * s->ic * conv_case_in(s));
    c.w = conv_case_numbers(r, (size_t)s->oc * s->ic / s->groups * conv_case_taps(s));
    c.bias = conv_case_numbers(r, s->oc);
    c.y = conv_case_numbers(r, s->n * s->oc * conv_case_out(s));
    return c;
}

static inline ConvCase conv_case_new(const ConvShape *s, Rng *r) {
    ConvCase c = conv_case_numbered(s, r);
    conv_case_answer(&c);
    return c;
}

static inline void conv_case_free(ConvCase *c) {
    free(c->x);
    free(c->w);
    free(c->bias);
    free(c->y);
}

// [n][channels][pixels] to [n][blocks][pixels][lanes]; lanes beyond the last channel are `other`.
static inline float *conv_case_blocked(const float *plain, size_t n, size_t channels, size_t pixels,
                                       size_t lanes, float other) {
    size_t blocks = (channels + lanes - 1) / lanes;
    float *out = conv_case_aligned(n * blocks * pixels * lanes);
    for (size_t i = 0; i < n * blocks * pixels * lanes; i++) {
        size_t lane = i % lanes, pixel = i / lanes % pixels, b = i / lanes / pixels % blocks;
        size_t image = i / lanes / pixels / blocks, channel = b * lanes + lane;
        bool   real = plain != NULL && channel < channels;
        out[i] = real ? plain[(image * channels + channel) * pixels + pixel] : other;
    }
    return out;
}
