// Depthwise convolutions and pools of bytes against plain loops, bit for bit: shapes, strides,
// padding, signs, parts, instruction sets.
#include "kernel/int8_window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernel/arrays.h"
#include "base/rng.h"
#include "tests/kernel/byte_isas.h"
#include "tests/runner.h"

typedef struct Case {
    uint32_t c, h, w, k, stride, pad, dilation;
    int32_t  most;  // magnitude of weights
    bool     is_signed;
} Case;

static ConvShape shape_of(const Case *c, uint32_t n) {
    uint32_t reach = c->dilation * (c->k - 1) + 1;
    return (ConvShape){.n = n,
                       .ic = c->c,
                       .oc = c->c,
                       .ih = c->h,
                       .iw = c->w,
                       .oh = (c->h + 2 * c->pad - reach) / c->stride + 1,
                       .ow = (c->w + 2 * c->pad - reach) / c->stride + 1,
                       .kh = c->k,
                       .kw = c->k,
                       .sh = c->stride,
                       .sw = c->stride,
                       .dh = c->dilation,
                       .dw = c->dilation,
                       .pt = c->pad,
                       .pl = c->pad,
                       .groups = c->c};
}

typedef struct Data {
    Int8Shape shape;
    ByteScale from;
    uint8_t  *x;
    int16_t  *w;
    int32_t  *bias;  // with the zero point
    float    *scale;
} Data;

static int32_t value_at(const Data *d, uint32_t n, int64_t y, int64_t x, uint32_t c, bool *inside) {
    const ConvShape *s = &d->shape.conv;
    *inside = y >= 0 && x >= 0 && y < s->ih && x < s->iw;
    if (!*inside) return 0;
    uint8_t b = d->x[((n * s->ih + (size_t)y) * s->iw + (size_t)x) * d->shape.x_pitch + c];
    return (d->from.is_signed ? (int8_t)b : b) - d->from.zero;
}

static Data make(const Case *c, Rng *r) {
    Data   d = {.shape = {shape_of(c, 2), (c->c + 7) / 8 * 8, (c->c + 7) / 8 * 8, c->is_signed}};
    size_t bytes = (size_t)2 * c->h * c->w * d.shape.x_pitch, taps = (size_t)c->k * c->k;
    d.from = (ByteScale){0.37f, c->is_signed ? -7 : 119, c->is_signed};
    d.x = exact_bytes(bytes + 64);  // kernels may read one vector past the last channel
    d.w = exact_bytes(taps * c->c * sizeof *d.w);
    d.bias = calloc(c->c + 32, sizeof *d.bias);
    d.scale = calloc(c->c + 32, sizeof *d.scale);
    for (size_t i = 0; i < bytes; i++) d.x[i] = (uint8_t)rng_below(r, 256);
    for (size_t i = 0; i < taps * c->c; i++) d.w[i] = (int16_t)between(r, -c->most, c->most);
    for (uint32_t i = 0; i < c->c; i++) {
        d.scale[i] = (float)between(r, 1, 1000) * 1e-5f;
        d.bias[i] = between(r, -5000, 5000);
        for (size_t t = 0; t < taps; t++) d.bias[i] -= d.from.zero * d.w[i * taps + t];
    }
    return d;
}

static void drop(Data *d) { free(d->x), free(d->w), free(d->bias), free(d->scale); }

static int32_t depthwise_sum(const Data *d, uint32_t n, uint32_t oy, uint32_t ox, uint32_t c) {
    const ConvShape *s = &d->shape.conv;
    int32_t          sum = d->bias[c];
    for (uint32_t t = 0; t < s->kh * s->kw; t++) {
        bool    inside;
        int32_t x = value_at(d, n, (int64_t)oy * s->sh + t / s->kw * s->dh - s->pt,
                             (int64_t)ox * s->sw + t % s->kw * s->dw - s->pl, c, &inside);
        sum += (x + d->from.zero) * d->w[(size_t)c * s->kh * s->kw + t];
    }
    return sum;
}

static uint8_t quantized(float x, float lo, float hi, int32_t zero) {
    return (uint8_t)((int32_t)fmin(fmax(nearbyint((double)x), (double)lo), (double)hi) + zero);
}

static void check_depthwise(const Data *d, const Isa *isa, const Int8Output *out, uint32_t parts) {
    const ConvShape *s = &d->shape.conv;
    size_t           bytes = (size_t)s->n * s->oh * s->ow * d->shape.y_pitch;
    void            *memory = exact_bytes(int8_depthwise_pack_bytes(&d->shape));
    Int8Depthwise    a = {.shape = d->shape, .bias = d->bias, .x = d->x, .x_zero = d->from.zero};
    a.weights = int8_depthwise_pack(&d->shape, isa, d->w, memory);
    a.y = exact_bytes(bytes);
    a.out = *out;
    a.out.scale = d->scale;
    for (uint32_t i = 0; i < parts; i++) {
        Part part = {i, parts, exact_bytes(int8_depthwise_scratch(&d->shape))};
        isa->int8_depthwise(&a, part);
        free(part.scratch);
    }
    for (size_t i = 0; i < (size_t)s->n * s->oh * s->ow; i++)
        for (uint32_t c = 0; c < s->ic; c++) {
            int32_t sum = depthwise_sum(d, (uint32_t)(i / s->ow / s->oh),
                                        (uint32_t)(i / s->ow % s->oh), (uint32_t)(i % s->ow), c);
            float   x = (float)sum * (d->scale[c] * out->factor);
            if (a.y[i * d->shape.y_pitch + c] != quantized(x, out->lo, out->hi, out->zero))
                fail_msg("%s %u channels, kernel %u: pixel %zu channel %u is wrong", isa->name,
                         s->ic, s->kh, i, c);
        }
    free(a.y), free(memory);
}

static void depthwise_is_exact(void **state) {
    (void)state;
    static const Case cases[] = {
        {8, 5, 6, 3, 1, 1, 1, 127, false},   {24, 7, 7, 3, 2, 1, 1, 127, true},
        {32, 6, 5, 3, 1, 1, 1, 128, false},  {72, 9, 8, 5, 2, 2, 1, 127, false},
        {100, 4, 7, 3, 1, 2, 2, 127, false}, {64, 3, 3, 3, 1, 1, 1, 255, false},
        {40, 5, 5, 1, 1, 0, 1, 127, true},   {33, 6, 6, 2, 2, 0, 1, 100, false},
        {160, 5, 9, 3, 1, 1, 1, 128, false}, {145, 4, 20, 3, 2, 1, 1, 60, false},
    };
    static const Int8Output outputs[] = {
        {.kind = INT8_BYTES, .factor = 1, .lo = -100, .hi = 155, .zero = 100},
        {.kind = INT8_BYTES, .factor = 0.25f, .lo = -128 - 3, .hi = 127 - 3, .zero = 3},
        {.kind = INT8_BYTES, .factor = 0.02f, .lo = -40, .hi = 90, .zero = 20},
        {.kind = INT8_BYTES, .factor = 200, .lo = -100, .hi = 20, .zero = 100},
    };
    const Isa *isas[BYTE_ISAS];
    size_t     n = byte_isas_here(isas);
    Rng        r = {5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Data d = make(&cases[i], &r);
        for (size_t k = 0; k < n; k++)
            for (uint32_t o = 0; o < 4; o++)
                check_depthwise(&d, isas[k], &outputs[o], 1 + o % 2 * 2);
        drop(&d);
    }
}

static uint8_t pooled(const Data *d, const Int8Pool *p, size_t pixel, uint32_t c) {
    const ConvShape *s = &p->pool.shape;
    uint32_t         n = (uint32_t)(pixel / s->ow / s->oh), count = 0;
    int64_t          top = (int64_t)(pixel / s->ow % s->oh) * s->sh - s->pt;
    int64_t          left = (int64_t)(pixel % s->ow) * s->sw - s->pl;
    int32_t          sum = 0, largest = INT32_MIN;
    for (uint32_t t = 0; t < s->kh * s->kw; t++) {
        bool    inside;
        int64_t y = top + t / s->kw * s->dh, x = left + t % s->kw * s->dw;
        int32_t v = value_at(d, n, y, x, c, &inside);
        if (inside) sum += v, largest = v > largest ? v : largest;
        bool padded = y < (int64_t)s->ih + p->pool.pb && x < (int64_t)s->iw + p->pool.pr;
        count += p->pool.count_pad ? padded : inside;
    }
    float v = p->pool.kind == POOL_MAX ? (float)largest * p->from.scale
                                       : (float)sum * p->from.scale / (float)count;
    return quantized(v / p->to.scale, byte_lowest(&p->to), byte_highest(&p->to), p->to.zero);
}

static void check_pool(const Data *d, const Isa *isa, PoolKind kind, bool count_pad, bool same) {
    const ConvShape *s = &d->shape.conv;
    Int8Pool         p = {.pool = {.shape = *s, .kind = kind, .count_pad = count_pad},
                          .pitch = d->shape.x_pitch,
                          .from = d->from,
                          .to = {0.41f, count_pad ? 3 : -9, !count_pad},
                          .x = d->x};
    size_t           pixels = (size_t)s->n * s->oh * s->ow;
    p.pool.pb = s->pt, p.pool.pr = s->pl;
    if (same) p.to = p.from;
    p.y = exact_bytes(pixels * p.pitch);
    for (uint32_t i = 0; i < 2; i++) isa->int8_pool(&p, (Part){i, 2, NULL});
    for (size_t i = 0; i < pixels; i++)
        for (uint32_t c = 0; c < s->ic; c++)
            if (p.y[i * p.pitch + c] != pooled(d, &p, i, c))
                fail_msg("%s kind %d: pixel %zu channel %u is %u, not %u", isa->name, (int)kind, i,
                         c, p.y[i * p.pitch + c], pooled(d, &p, i, c));
    free(p.y);
}

static void pools_are_exact(void **state) {
    (void)state;
    static const Case cases[] = {
        {8, 6, 6, 3, 2, 1, 1, 1, false},  {24, 7, 5, 2, 2, 0, 1, 1, true},
        {17, 7, 7, 7, 1, 0, 1, 1, false}, {20, 6, 7, 3, 1, 1, 2, 1, false},
        {70, 6, 7, 3, 2, 1, 1, 1, true},
    };
    const Isa *isas[3];
    size_t     n = isas_here(isas);
    Rng        r = {6};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Data d = make(&cases[i], &r);
        for (size_t k = 0; k < n; k++) {
            check_pool(&d, isas[k], POOL_MAX, false, false);
            check_pool(&d, isas[k], POOL_MAX, false, true);
            check_pool(&d, isas[k], POOL_AVERAGE, false, false);
            check_pool(&d, isas[k], POOL_AVERAGE, true, false);
        }
        drop(&d);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depthwise_is_exact),
        cmocka_unit_test(pools_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
