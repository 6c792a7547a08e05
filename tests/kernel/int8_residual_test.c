// Byte convolutions that add other bytes to theirs against the same convolution followed by the
// sum of two byte arrays, bit for bit: shapes, signs, scales, clips, versions, instruction sets.
#include "kernel/int8_residual.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/int8_conv.h"
#include "tests/kernel/arrays.h"
#include "tests/kernel/byte_isas.h"
#include "tests/runner.h"

enum { MAX_VERSIONS = 64, PAD = 16 };

static const CacheSizes caches = {32 << 10, 1 << 20, 32 << 20};

typedef struct Data {
    Int8Shape  shape;
    Int8Output out;
    size_t     bytes;  // of the result
    uint8_t   *x, *added, *bytes_only, *want, *got;
    int16_t   *w;
    int32_t   *bias;
    float     *scale;
} Data;

static Data make(const ConvShape *s, bool x_signed, Rng *r) {
    Data   d = {.shape = {*s, int8_pitch(s->ic, 16), int8_pitch(s->oc, 16), x_signed}};
    size_t x = (size_t)s->n * s->ih * s->iw * d.shape.x_pitch;
    size_t weights = (size_t)s->oc * (s->ic / s->groups) * s->kh * s->kw;
    d.bytes = (size_t)s->n * s->oh * s->ow * d.shape.y_pitch;
    d.x = exact_bytes(x);
    d.w = exact_bytes(weights * sizeof *d.w);
    d.bias = calloc(s->oc + PAD, sizeof *d.bias);
    d.scale = calloc(s->oc + PAD, sizeof *d.scale);
    d.added = exact_bytes(d.bytes), d.bytes_only = exact_bytes(d.bytes);
    d.want = exact_bytes(d.bytes), d.got = exact_bytes(d.bytes);
    for (size_t i = 0; i < x; i++) d.x[i] = (uint8_t)rng_below(r, 256);
    for (size_t i = 0; i < d.bytes; i++) d.added[i] = (uint8_t)rng_below(r, 256);
    for (size_t i = 0; i < weights; i++) d.w[i] = (int16_t)between(r, -128, 127);
    const double spread = sqrt((double)weights / s->oc) * 10000;
    for (uint32_t i = 0; i < s->oc; i++) {
        d.bias[i] = between(r, -100000, 100000);
        d.scale[i] = (float)(between(r, 50, 150) / spread);
    }
    return d;
}

static void drop(Data *d) {
    free(d->x), free(d->w), free(d->bias), free(d->scale);
    free(d->added), free(d->bytes_only), free(d->want), free(d->got);
}

// The slow twin: the convolution's bytes, which are in memory, then the sum. Its clip may be
// infinite.
static void add_after(const Data *d, const Isa *isa, const Int8Residual *r) {
    ElementwiseProgram p = {2, 2, {{EWISE_ADD, 0, EWISE_ARG, EWISE_ARG + 1, 0, 0, 0, 0}}};
    p.steps[1] = (ElementwiseStep){EWISE_CLIP, 0, 0, 0, r->least, r->most, 0, 0};
    ByteElementwise e = {.program = &p, .y = d->want, .to = r->to, .count = d->bytes};
    float          *floats = exact_bytes(d->bytes * sizeof *floats);
    e.floats = floats;  // the general loop
    e.in[0].at = d->bytes_only, e.in[0].from = r->own;
    e.in[1].at = d->added, e.in[1].from = r->from;
    isa->byte_elementwise(&e, (Part){0, 1, NULL});
    free(floats);
}

static void run(const Data *d, Int8Conv *c, const Isa *isa, uint8_t *y, const Int8Residual *r) {
    const uint32_t parts = 2;
    c->y = y;
    c->out.residual = r;
    c->out.added = r != NULL ? d->added : NULL;
    memset(y, 0, d->bytes);
    for (uint32_t p = 0; p < parts; p++) {
        Part part = {p, parts, exact_bytes(int8_scratch(&d->shape, isa, &c->version))};
        isa->int8_conv(c, part);
        free(part.scratch);
    }
}

static void expect(const Data *d, const Isa *isa, const Int8Residual *r) {
    const uint32_t pitch = d->shape.y_pitch, oc = d->shape.conv.oc;
    for (size_t i = 0; i < d->bytes; i++)
        if (i % pitch < oc && d->got[i] != d->want[i])
            fail_msg("%s oc %u direct %d: byte %zu is %d, not %d", isa->name, oc, r->is_direct, i,
                     d->got[i], d->want[i]);
}

static void every_version(const Data *d, const Isa *isa, const Int8Residual *residuals, size_t n) {
    Version  all[MAX_VERSIONS];
    void    *packed = exact_bytes(int8_pack_bytes(&d->shape, isa, d->w));
    Int8Conv c = {.shape = d->shape, .x = d->x, .x_zero = 3, .bias = d->bias};
    c.weights = int8_pack(&d->shape, isa, d->w, packed);
    uint32_t versions = int8_versions(&d->shape, isa, &caches, all, MAX_VERSIONS);
    for (uint32_t v = 0; v < versions; v++)
        for (size_t i = 0; i < n; i++) {
            const Int8Residual *r = &residuals[i];
            c.version = all[v];
            c.out = (Int8Output){.kind = INT8_BYTES,
                                 .factor = 1,
                                 .scale = d->scale,
                                 .lo = byte_lowest(&r->own),
                                 .hi = byte_highest(&r->own),
                                 .zero = r->own.zero};
            run(d, &c, isa, d->bytes_only, NULL);
            add_after(d, isa, r);
            run(d, &c, isa, d->got, r);
            expect(d, isa, r);
        }
    free(packed);
}

// Both forms of every residual.
static size_t residuals_of(Int8Residual *out) {
    static const ByteScale scales[][3] = {
        {{0.031f, 128, false}, {0.0217f, 0, false}, {0.0283f, 0, false}},
        {{0.031f, -7, true}, {0.0417f, 11, true}, {0.0329f, -128, true}},
        {{0.011f, 100, false}, {0.0417f, 11, true}, {0.0329f, 30, false}},
        {{0.25f, 128, false}, {0.25f, 128, false}, {0.5f, 127, false}},  // ties
    };
    static const float clips[][2] = {{-INFINITY, INFINITY}, {0, INFINITY}, {0, 3.1f}};
    size_t             n = 0;
    for (size_t i = 0; i < COUNT(scales); i++)
        for (size_t k = 0; k < COUNT(clips); k++) {
            const ByteScale *s = scales[i];
            out[n] = int8_residual(&s[0], &s[1], &s[2], clips[k][0], clips[k][1]);
            if (!out[n].is_direct) fail_msg("residual %zu has no direct form", n);
            out[n + 1] = out[n];
            out[n + 1].is_direct = false;
            n += 2;
        }
    return n;
}

#define CONV(n_, ic_, ih_, iw_, oc_, k, stride, pad, g)                                            \
    {                                                                                              \
        .n = (n_), .ic = (ic_), .ih = (ih_), .iw = (iw_), .oc = (oc_), .kh = (k), .kw = (k),       \
        .sh = (stride), .sw = (stride), .dh = 1, .dw = 1, .pt = (pad), .pl = (pad), .groups = (g), \
        .oh = ((ih_) + 2 * (pad) - (k)) / (stride) + 1,                                            \
        .ow = ((iw_) + 2 * (pad) - (k)) / (stride) + 1                                             \
    }

static void fused_sums_equal_separate_ones(void **state) {
    (void)state;
    static const ConvShape shapes[] = {
        CONV(1, 16, 5, 6, 64, 1, 1, 0, 1), CONV(2, 24, 5, 5, 40, 1, 1, 0, 1),
        CONV(1, 8, 7, 6, 33, 3, 2, 1, 1),  CONV(1, 12, 5, 4, 17, 3, 1, 1, 1),
        CONV(1, 5, 4, 4, 3, 3, 1, 1, 1),   CONV(1, 32, 4, 5, 32, 3, 1, 1, 2),
        CONV(1, 16, 6, 5, 152, 1, 2, 0, 1)};
    Int8Residual residuals[32];
    const Isa   *isas[BYTE_ISAS];
    size_t       n = residuals_of(residuals), n_isas = byte_isas_here(isas);
    Rng          r = {11};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        Data d = make(&shapes[i], i % 2 == 1, &r);
        for (size_t k = 0; k < n_isas; k++) every_version(&d, isas[k], residuals, n);
        drop(&d);
    }
}

// A scale that is far from the others leaves the exact form.
static void far_scales_have_no_direct_form(void **state) {
    (void)state;
    const ByteScale    near = {0.03f, 0, false}, far = {1e-9f, 0, false};
    const Int8Residual r = int8_residual(&near, &far, &near, -INFINITY, INFINITY);
    assert_false(r.is_direct);
}

// Every pair of bytes: the direct form, computed with fused multiply-adds, against divisions.
static void direct_forms_are_exact(void **state) {
    (void)state;
    uint32_t direct = 0;
    Rng      rng = {5};
    for (int i = 0; i < 40; i++) {
        ByteScale s[3];
        for (int k = 0; k < 3; k++) {
            const bool is_signed = rng_below(&rng, 2) == 1;
            s[k] = (ByteScale){(float)between(&rng, 1000, 9000) * 1e-5f,
                               is_signed ? between(&rng, -128, 127) : between(&rng, 0, 255),
                               is_signed};
        }
        const Int8Residual r = int8_residual(&s[0], &s[1], &s[2], 0, INFINITY);
        direct += r.is_direct;
        for (int32_t a = 0; r.is_direct && a < 256; a++)
            for (int32_t b = 0; b < 256; b++) {
                const float    own = byte_lowest(&r.own) + (float)a;
                volatile float x = own * r.own.scale;  // rounded
                volatile float y = (byte_lowest(&r.from) + (float)b) * r.from.scale;
                const float    sum = fmaxf(x + y, 0);
                const float    want = fminf(fmaxf(nearbyintf(sum / r.to.scale), byte_lowest(&r.to)),
                                            byte_highest(&r.to));
                // Byte b counts from the lowest: the sign bit of int8 flipped.
                const float at = fmaf(r.from_ratio, (float)b, r.offset);
                const float got = fminf(fmaxf(nearbyintf(fmaf(r.own_ratio, own, at)), r.lo), r.hi);
                if (got != want) fail_msg("%d and %d: %g, not %g", a, b, (double)got, (double)want);
            }
    }
    print_message("%u of 40 have a direct form\n", direct);
    assert_true(direct >= 20);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_sums_equal_separate_ones),
        cmocka_unit_test(far_scales_have_no_direct_form),
        cmocka_unit_test(direct_forms_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
