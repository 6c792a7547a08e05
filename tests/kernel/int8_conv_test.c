// Byte convolutions and products against plain loops, bit for bit: shapes, groups, signs, weights
// that need extra quads, outputs, versions, parts, instruction sets.
#include "kernel/int8_conv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernel/arrays.h"
#include "base/rng.h"
#include "tests/kernel/byte_isas.h"
#include "tests/runner.h"

enum { MAX_VERSIONS = 64, MOST_PAD = 16 };

static const CacheSizes caches = {32 << 10, 1 << 20, 32 << 20}, tiny = {1 << 10, 8 << 10, 1 << 20};

typedef struct Case {
    ConvShape conv;
    uint32_t  x_pitch;    // 0: as kernels write
    int32_t   low, high;  // range of weights
    bool      x_signed, product;
} Case;

typedef struct Data {
    Int8Shape shape;
    uint8_t  *x;
    int16_t  *w;
    int32_t  *bias;
    float    *scale, *float_bias;
    int32_t  *sums;  // [n][oh][ow][oc], bias included
    int32_t   x_zero;
} Data;

static int32_t input_at(const Data *d, uint32_t n, int64_t y, int64_t x, uint32_t c) {
    const ConvShape *s = &d->shape.conv;
    if (y < 0 || x < 0 || y >= s->ih || x >= s->iw) return 0;
    uint8_t byte = d->x[((n * s->ih + (size_t)y) * s->iw + (size_t)x) * d->shape.x_pitch + c];
    return (d->shape.x_signed ? (int8_t)byte : byte) - d->x_zero;
}

static int32_t sum_at(const Data *d, uint32_t n, uint32_t oy, uint32_t ox, uint32_t o) {
    const ConvShape *s = &d->shape.conv;
    uint32_t         ic = s->ic / s->groups, first = o / (s->oc / s->groups) * ic;
    int32_t          sum = d->bias[o];
    for (uint32_t c = 0; c < ic; c++)
        for (uint32_t ky = 0; ky < s->kh; ky++)
            for (uint32_t kx = 0; kx < s->kw; kx++)
                sum += d->w[((o * ic + c) * s->kh + ky) * s->kw + kx] *
                       input_at(d, n, (int64_t)oy * s->sh + ky * s->dh - s->pt,
                                (int64_t)ox * s->sw + kx * s->dw - s->pl, first + c);
    return sum;
}

static Data make(const Case *c, Rng *r) {
    const ConvShape *s = &c->conv;
    Data             d = {.shape = {*s, c->x_pitch, s->oc, c->x_signed}};
    size_t           weights = (size_t)s->oc * (s->ic / s->groups) * s->kh * s->kw;
    if (c->x_pitch == 0) d.shape.x_pitch = int8_pitch(s->ic, 8);
    if (c->product) d.shape = int8_product(s->ih, s->oc, s->ic, c->x_signed);
    size_t bytes = (size_t)s->n * s->ih * s->iw * d.shape.x_pitch;
    d.x = exact_bytes(bytes);
    d.w = exact_bytes(weights * sizeof *d.w);
    d.bias = calloc(s->oc + MOST_PAD, sizeof *d.bias);
    d.scale = calloc(s->oc + MOST_PAD, sizeof *d.scale);
    d.float_bias = calloc(s->oc + MOST_PAD, sizeof *d.float_bias);
    d.sums = exact_bytes((size_t)s->n * s->oh * s->ow * s->oc * sizeof *d.sums);
    d.x_zero = c->x_signed ? between(r, -128, 127) : between(r, 0, 255);
    for (size_t i = 0; i < bytes; i++)
        d.x[i] = (uint8_t)rng_below(r, 8) < 6 ? (uint8_t)rng_below(r, 256) : 255;
    for (size_t i = 0; i < weights; i++) d.w[i] = (int16_t)between(r, c->low, c->high);
    for (uint32_t i = 0; i < s->oc; i++) {
        d.bias[i] = between(r, -100000, 100000);
        d.scale[i] = (float)between(r, 1, 1000) * 1e-6f;
        d.float_bias[i] = (float)between(r, -9, 9);
    }
    int32_t *to = d.sums;
    for (uint32_t n = 0; n < s->n; n++)
        for (uint32_t y = 0; y < s->oh; y++)
            for (uint32_t x = 0; x < s->ow; x++)
                for (uint32_t o = 0; o < s->oc; o++) *to++ = sum_at(&d, n, y, x, o);
    return d;
}

static void drop(Data *d) {
    free(d->x), free(d->w), free(d->bias), free(d->scale), free(d->float_bias), free(d->sums);
}

static const Int8Output outputs[] = {
    {.kind = INT8_SUMS},
    {.kind = INT8_BYTES, .factor = 1, .lo = -77, .hi = 178, .zero = 77},
    {.kind = INT8_BYTES, .factor = 0.5f, .lo = 0, .hi = 124, .zero = 3},
    {.kind = INT8_BYTES, .factor = 1, .lo = -128 + 5, .hi = 127 + 5, .zero = -5},
    {.kind = INT8_BYTES, .factor = 3000, .lo = -40, .hi = 87, .zero = 40},  // scales of 1 and more
    {.kind = INT8_FLOATS, .factor = 2, .epilogue = {.lo = -1e9f, .hi = 1e9f}},
};

static void expect(const Data *d, const Int8Conv *c, const Isa *isa) {
    const ConvShape *s = &d->shape.conv;
    size_t           pixels = (size_t)s->n * s->oh * s->ow;
    for (size_t i = 0; i < pixels * s->oc; i++) {
        size_t at = i / s->oc * d->shape.y_pitch + i % s->oc;
        float  x = (float)d->sums[i] * (d->scale[i % s->oc] * c->out.factor);
        double want = d->sums[i], got = want;
        if (c->out.kind == INT8_SUMS) got = ((int32_t *)c->y)[at];
        if (c->out.kind == INT8_BYTES) {
            want = fmin(fmax(nearbyint((double)x), (double)c->out.lo), (double)c->out.hi) +
                   c->out.zero;
            got = c->out.zero < 0 ? ((int8_t *)c->y)[at] : ((uint8_t *)c->y)[at];
        }
        if (c->out.kind == INT8_FLOATS) {
            want = (double)x + (double)d->float_bias[i % s->oc];
            got = (double)((float *)c->y)[at];
            if (fabs(got - want) < 1e-4) got = want;
        }
        if (got != want)
            fail_msg("%s ic %u oc %u output %u: element %zu is %g, not %g", isa->name, s->ic, s->oc,
                     (unsigned)c->out.kind, i, got, want);
    }
}

static void every_version(const Data *d, const Isa *isa, const CacheSizes *sizes) {
    Version  all[MAX_VERSIONS];
    void    *packed = exact_bytes(int8_pack_bytes(&d->shape, isa, d->w));
    Int8Conv c = {.shape = d->shape, .x = d->x, .x_zero = d->x_zero, .bias = d->bias};
    c.weights = int8_pack(&d->shape, isa, d->w, packed);
    size_t   elements = (size_t)d->shape.conv.n * d->shape.conv.oh * d->shape.conv.ow;
    uint32_t n = int8_versions(&d->shape, isa, sizes, all, MAX_VERSIONS);
    assert_true(n >= 1);
    for (uint32_t v = 0; v < n; v++)
        for (uint32_t o = 0; o < sizeof outputs / sizeof *outputs; o++) {
            uint32_t parts = 1 + (v + o) % 3;
            size_t   size = outputs[o].kind == INT8_BYTES ? 1 : 4;
            c.version = all[v];
            c.out = outputs[o];
            c.out.scale = d->scale;
            c.out.epilogue.bias = d->float_bias;
            c.y = exact_bytes(elements * d->shape.y_pitch * size);
            for (uint32_t p = 0; p < parts; p++) {
                Part part = {p, parts, exact_bytes(int8_scratch(&d->shape, isa, &all[v]))};
                isa->int8_conv(&c, part);
                free(part.scratch);
            }
            expect(d, &c, isa);
            free(c.y);
        }
    free(packed);
}

static void check(const Case *c) {
    Rng        r = {c->conv.ic * 7919 + c->conv.oc};
    const Isa *isas[BYTE_ISAS];
    size_t     n = byte_isas_here(isas);
    Data       d = make(c, &r);
    for (size_t i = 0; i < n; i++) {
        every_version(&d, isas[i], &caches);
        every_version(&d, isas[i], &tiny);
    }
    drop(&d);
}

#define CONV(n_, ic_, ih_, iw_, oc_, k, stride, pad, dil, g)                                       \
    {                                                                                              \
        .n = (n_), .ic = (ic_), .ih = (ih_), .iw = (iw_), .oc = (oc_), .kh = (k), .kw = (k),       \
        .sh = (stride), .sw = (stride), .dh = (dil), .dw = (dil), .pt = (pad), .pl = (pad),        \
        .groups = (g), .oh = ((ih_) + 2 * (pad) - (dil) * ((k)-1) - 1) / (stride) + 1,             \
        .ow = ((iw_) + 2 * (pad) - (dil) * ((k)-1) - 1) / (stride) + 1                             \
    }
#define PRODUCT(m, n_, k)                                                                          \
    {                                                                                              \
        .n = 1, .ic = (k), .ih = (m), .iw = 1, .oc = (n_), .oh = (m), .ow = 1, .kh = 1, .kw = 1,   \
        .sh = 1, .sw = 1, .dh = 1, .dw = 1, .groups = 1                                            \
    }

static void products_are_exact(void **state) {
    (void)state;
    static const Case cases[] = {
        {PRODUCT(1, 1, 1), 0, -128, 127, false, true},
        {PRODUCT(1, 40, 64), 0, -128, 127, false, true},
        {PRODUCT(7, 33, 30), 0, -64, 64, false, true},
        {PRODUCT(7, 33, 31), 0, -128, 127, true, true},
        {PRODUCT(50, 17, 128), 0, -255, 255, false, true},
        {PRODUCT(13, 64, 256), 0, 127, 127, true, true},
        {PRODUCT(13, 64, 256), 0, -128, -128, false, true},
        {PRODUCT(29, 96, 36), 0, -20, 127, false, true},
        {PRODUCT(50, 256, 84), 0, -128, 127, false, true},  // few rows: columns are shared out
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&cases[i]);
}

static void convolutions_are_exact(void **state) {
    (void)state;
    static const Case cases[] = {
        {CONV(1, 3, 11, 9, 8, 3, 2, 1, 1, 1), 0, -128, 127, false, false},
        {CONV(2, 16, 6, 7, 24, 1, 1, 0, 1, 1), 0, -128, 127, false, false},
        {CONV(1, 16, 7, 7, 12, 1, 2, 0, 1, 1), 0, -128, 127, true, false},
        {CONV(1, 16, 7, 7, 12, 1, 2, 0, 1, 1), 0, -128, 127, false, false},
        {CONV(1, 12, 8, 5, 17, 3, 1, 1, 1, 1), 0, -255, 255, true, false},
        {CONV(1, 8, 9, 9, 5, 3, 1, 2, 2, 1), 0, -128, 127, false, false},
        {CONV(1, 8, 9, 9, 16, 3, 1, 0, 1, 1), 0, -128, 127, false, false},
        {CONV(1, 32, 5, 6, 32, 3, 1, 1, 1, 4), 32, -128, 127, false, false},
        {CONV(1, 12, 5, 6, 6, 3, 1, 1, 1, 3), 16, -128, 127, true, false},
        {CONV(1, 64, 5, 6, 32, 1, 1, 0, 1, 2), 64, -128, 127, false, false},
        {CONV(1, 5, 3, 3, 9, 5, 1, 2, 1, 1), 5, -128, 127, false, false},
        {CONV(1, 4, 2, 2, 3, 3, 1, 3, 1, 1), 0, -128, 127, false, false},
        {CONV(1, 16, 7, 6, 256, 3, 1, 1, 1, 1), 0, -128, 127, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&cases[i]);
}

// Weights of opposite signs, and of 7 bits, need no extra quads; those of full range do where the
// instruction saturates.
static void extra_quads_are_few(void **state) {
    (void)state;
    const Isa *isas[BYTE_ISAS];
    Int8Shape  s = int8_product(1, 16, 64, false);
    int16_t    w[16 * 64];
    size_t     bytes[3], n = byte_isas_here(isas);
    for (size_t i = 0; i < n; i++) {
        Int8Traits t;
        isas[i]->int8_traits(&t);
        for (int k = 0; k < 3; k++) {
            for (int j = 0; j < 16 * 64; j++)
                w[j] = (int16_t)(k == 0 ? 64 : k == 1 ? (j % 2 == 0 ? 127 : -128) : 65);
            bytes[k] = int8_pack_bytes(&s, isas[i], w);
        }
        assert_int_equal(bytes[0], bytes[1]);
        if (t.adds_quads)
            assert_int_equal(bytes[2], bytes[0]);
        else
            assert_true(bytes[2] >= bytes[0] + sizeof w / 2);
    }
}

// The twin in the encoding of AVX-512 runs in the tests above; this says what was not run.
static void avxvnni_runs(void **state) {
    (void)state;
#ifdef __x86_64__
    if (has_avx_vnni()) return;
#endif
    print_message("this CPU has no AVX-VNNI: the instruction set avxvnni was not run\n");
    skip();
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(convolutions_are_exact),
        cmocka_unit_test(avxvnni_runs),
        cmocka_unit_test(extra_quads_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
