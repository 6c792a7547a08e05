// Winograd convolutions against the reference, in every version, for odd sizes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "kernel/ref/ref_conv.h"
#include "kernel/winograd.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { MOST_VERSIONS = 512 };

static const CacheSizes caches = {32 << 10, 64 << 10,
                                  4 << 20};  // small, for blocks on small images

// One convolution: plain data, reference result, buffers for one run.
typedef struct Case {
    ConvShape  s;
    const Isa *isa;
    float     *x, *w, *bias, *add, *want;        // plain
    float     *bx, *by, *bbias, *badd, *packed;  // blocked
    float      most;                             // largest |want| before the clip
    bool       with_bias, with_add, with_chain;
    Epilogue   epilogue;
} Case;

static void *exact(size_t bytes) {
    void *p = NULL;
    assert_int_equal(posix_memalign(&p, TENSOR_ALIGN, bytes), 0);
    return p;
}

static float *exact_random(size_t n, Rng *r) {
    float *p = exact(n * sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = (float)rng_normal(r);
    return p;
}

static ConvShape shape(uint32_t n, uint32_t ic, uint32_t ih, uint32_t iw, uint32_t oc, uint32_t pt,
                       uint32_t pl, uint32_t oh, uint32_t ow) {
    return (ConvShape){.n = n,
                       .ic = ic,
                       .ih = ih,
                       .iw = iw,
                       .oc = oc,
                       .oh = oh,
                       .ow = ow,
                       .kh = 3,
                       .kw = 3,
                       .sh = 1,
                       .sw = 1,
                       .dh = 1,
                       .dw = 1,
                       .pt = pt,
                       .pl = pl,
                       .groups = 1};
}

static size_t x_count(const ConvShape *s) { return (size_t)s->n * s->ic * s->ih * s->iw; }
static size_t y_count(const ConvShape *s) { return (size_t)s->n * s->oc * s->oh * s->ow; }

static uint32_t padded(uint32_t n, uint32_t lanes) { return (n + lanes - 1) / lanes * lanes; }

// Plain [n][c][size] to blocked; lanes beyond c hold NaN, which no result may contain.
static float *block(const float *from, uint32_t n, uint32_t c, size_t size, uint32_t lanes) {
    uint32_t all = padded(c, lanes);
    float   *to = exact(n * all * size * sizeof *to);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < all; k++)
            for (size_t p = 0; p < size; p++)
                to[(((size_t)i * all + k / lanes * lanes) * size) + p * lanes + k % lanes] =
                    k < c ? from[((size_t)i * c + k) * size + p] : NAN;
    return to;
}

static void reference(Case *c) {
    const ConvShape *s = &c->s;
    int64_t          below = (int64_t)s->oh + 2 - s->ih - s->pt;
    int64_t          right = (int64_t)s->ow + 2 - s->iw - s->pl;
    RefConv          p = {.window = {2,
                                     {s->ih, s->iw},
                                     {s->oh, s->ow},
                                     {3, 3},
                                     {1, 1},
                                     {1, 1},
                                     {s->pt, s->pl},
                                     {below, right}},
                          .group = 1};
    Tensor           x = tensor_of(DT_F32, 4, (int64_t[]){s->n, s->ic, s->ih, s->iw}, c->x);
    Tensor           w = tensor_of(DT_F32, 4, (int64_t[]){s->oc, s->ic, 3, 3}, c->w);
    Tensor           bias = tensor_of(DT_F32, 1, (int64_t[]){s->oc}, c->bias);
    Tensor           y = tensor_of(DT_F32, 4, (int64_t[]){s->n, s->oc, s->oh, s->ow}, c->want);
    Arena            scratch;
    assert_int_equal(arena_init(&scratch, 1 << 26), ERR_OK);
    assert_int_equal(ref_conv(&p, &x, &w, c->with_bias ? &bias : NULL, &y, &scratch), ERR_OK);
    arena_finish(&scratch);
    c->most = 0;
    for (size_t i = 0; i < y_count(s); i++) {
        if (c->with_add) c->want[i] += c->add[i];
        if (fabsf(c->want[i]) > c->most) c->most = fabsf(c->want[i]);
        c->want[i] = fminf(c->epilogue.hi, fmaxf(c->epilogue.lo, c->want[i]));
        if (c->with_chain)
            c->want[i] = c->want[i] * c->bias[i / (s->oh * s->ow) % s->oc] + 2 * c->add[i];
    }
}

// y * per-channel argument + residual * scalar.
static const ElementwiseProgram program = {
    .n_steps = 3,
    .n_args = 4,
    .steps = {{.op = EWISE_MUL, .a = EWISE_ARG, .b = EWISE_ARG + 1},
              {.op = EWISE_MUL, .to = 1, .a = EWISE_ARG + 2, .b = EWISE_ARG + 3},
              {.op = EWISE_ADD, .a = 0, .b = 1}}};

static void case_start(Case *c, Rng *r) {
    const ConvShape *s = &c->s;
    uint32_t         lanes = c->isa->lanes;
    c->x = exact_random(x_count(s), r);
    c->w = exact_random((size_t)s->oc * s->ic * 9, r);
    c->bias = exact_random(s->oc, r);
    c->add = exact_random(y_count(s), r);
    c->want = exact(y_count(s) * sizeof *c->want);
    reference(c);
    c->bx = block(c->x, s->n, s->ic, (size_t)s->ih * s->iw, lanes);
    c->badd = block(c->add, s->n, s->oc, (size_t)s->oh * s->ow, lanes);
    c->bbias = block(c->bias, 1, s->oc, 1, lanes);
    c->by = block(c->add, s->n, s->oc, (size_t)s->oh * s->ow, lanes);
    c->epilogue.bias = c->with_bias ? c->bbias : NULL;
    c->epilogue.add = c->with_add ? c->badd : NULL;
    static const float two = 2;
    if (!c->with_chain) return;
    c->epilogue.program = &program;
    c->epilogue.args[1] = (ElementwiseInput){c->bbias, EWISE_PER_LANE};
    c->epilogue.args[2] = (ElementwiseInput){c->badd, EWISE_CONTIGUOUS};
    c->epilogue.args[3] = (ElementwiseInput){&two, EWISE_SCALAR};
}

static void case_end(Case *c) {
    float *all[] = {c->x, c->w, c->bias, c->add, c->want, c->bx, c->by, c->bbias, c->badd};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

// The largest difference relative to the largest output.
static float difference(const Case *c) {
    const ConvShape *s = &c->s;
    uint32_t         lanes = c->isa->lanes, all = padded(s->oc, lanes);
    size_t           size = (size_t)s->oh * s->ow;
    float            worst = 0;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->oc; k++)
            for (size_t p = 0; p < size; p++) {
                float got =
                    c->by[((size_t)i * all + k / lanes * lanes) * size + p * lanes + k % lanes];
                float d = fabsf(got - c->want[((size_t)i * s->oc + k) * size + p]) / c->most;
                if (!(d <= worst)) worst = d;
                if (isnan(got)) return INFINITY;
            }
    return worst;
}

static float run(Case *c, const Version *v, const float *packed, uint32_t parts) {
    const ConvShape *s = &c->s;
    Winograd         w = {*s, *v, c->epilogue, c->bx, packed, c->by};
    size_t           bytes = winograd_scratch(s, c->isa, v);
    memset(c->by, 0xff,
           (size_t)s->n * padded(s->oc, c->isa->lanes) * s->oh * s->ow * sizeof *c->by);
    for (uint32_t i = 0; i < parts; i++) {
        void *scratch = exact(bytes);
        memset(scratch, 0xff, bytes);
        c->isa->winograd(&w, (Part){i, parts, scratch});
        free(scratch);
    }
    return difference(c);
}

// Every `stride`-th version from `first` on, with a varying number of parts.
static void check_versions(Case *c, uint32_t first, uint32_t stride) {
    static const uint32_t parts[] = {1, 2, 3, 7};
    Version               v[MOST_VERSIONS];
    float                *packed[ALGO_COUNT] = {0};
    for (int a = ALGO_WINOGRAD2; a <= ALGO_WINOGRAD4; a++) {
        packed[a] = exact(winograd_pack_bytes(&c->s, c->isa, (Algo)a));
        winograd_pack(&c->s, c->isa, (Algo)a, c->w, packed[a]);
    }
    uint32_t n = winograd_versions(&c->s, c->isa, &caches, v, MOST_VERSIONS);
    assert_true(n > 0 && n < MOST_VERSIONS);
    for (uint32_t i = first % n; i < n; i += stride) {
        float d = run(c, &v[i], packed[v[i].algo], parts[i % 4]);
        if (!(d < 2e-5F))
            fail_msg("%s %s: %ux%ux%u to %ux%ux%u, version %u is wrong by %g", c->isa->name,
                     algo_name(v[i].algo), c->s.ic, c->s.ih, c->s.iw, c->s.oc, c->s.oh, c->s.ow, i,
                     (double)d);
    }
    for (int a = ALGO_WINOGRAD2; a <= ALGO_WINOGRAD4; a++) free(packed[a]);
}

static void check(ConvShape s, uint32_t seed, uint32_t stride) {
    const Isa *isas[3];
    size_t     n = isas_here(isas);
    for (size_t i = 0; i < n; i++) {
        Rng  r = {seed};
        Case c = {.s = s, .isa = isas[i], .with_bias = seed % 2, .with_add = seed / 2 % 2};
        c.epilogue.lo = seed / 4 % 2 ? 0 : -INFINITY;
        c.epilogue.hi = seed / 8 % 2 ? 6 : INFINITY;
        c.with_chain = seed % 5 < 2;
        case_start(&c, &r);
        check_versions(&c, seed, stride);
        case_end(&c);
    }
}

static void sizes(void **state) {
    (void)state;
    static const uint32_t channels[] = {1, 3, 7, 8, 9, 16, 20, 33};
    uint32_t              seed = 1;
    for (uint32_t y = 1; y <= 17; y++)
        for (uint32_t x = 1; x <= 17; x += 1 + seed % 2) {
            uint32_t pt = seed % 3, pl = seed / 3 % 3, below = seed / 9 % 3, right = seed / 2 % 3;
            uint32_t ih = y + pt + below < 3 ? 3 - pt - below : y;
            uint32_t iw = x + pl + right < 3 ? 3 - pl - right : x;
            check(shape(1 + seed % 2, channels[seed % 8], ih, iw, channels[seed / 8 % 8], pt, pl,
                        ih + pt + below - 2, iw + pl + right - 2),
                  seed, 11);
            seed++;
        }
}

static void versions(void **state) {
    (void)state;
    check(shape(2, 20, 13, 22, 33, 1, 1, 13, 22), 15, 1);
    check(shape(1, 9, 30, 17, 70, 0, 2, 28, 18), 2, 1);
    check(shape(1, 3, 8, 8, 4, 1, 1, 8, 8), 1, 1);
}

// Splits and orders that winograd_versions does not combine.
static void combinations(void **state) {
    (void)state;
    const Isa *isas[3];
    size_t     n = isas_here(isas);
    for (size_t i = 0; i < n; i++) {
        Rng  r = {5};
        Case c = {.s = shape(2, 9, 11, 10, 41, 1, 1, 11, 10), .isa = isas[i]};
        c.epilogue.lo = -INFINITY;
        c.epilogue.hi = INFINITY;
        case_start(&c, &r);
        float *packed = exact(winograd_pack_bytes(&c.s, c.isa, ALGO_WINOGRAD4));
        winograd_pack(&c.s, c.isa, ALGO_WINOGRAD4, c.w, packed);
        for (uint8_t k = 0; k < 6; k++) {
            Version v = {.algo = ALGO_WINOGRAD4,
                         .order = k % 2,
                         .split = k / 2,
                         .tile_rows = 3,
                         .tile_vecs = 2,
                         .rows = 5,
                         .columns = 3};
            for (uint32_t parts = 1; parts < 60; parts += 3)
                assert_true(run(&c, &v, packed, parts) < 2e-5F);
        }
        free(packed);
        case_end(&c);
    }
}

// 512 channels of unit variance: the error of both algorithms is well below 1e-4.
static void accuracy(void **state) {
    (void)state;
    const Isa *isas[3];
    size_t     n = isas_here(isas);
    Rng        r = {3};
    Case       c = {.s = shape(1, 512, 8, 8, 16, 1, 1, 8, 8), .isa = isas[n - 1]};
    c.epilogue.lo = -INFINITY;
    c.epilogue.hi = INFINITY;
    case_start(&c, &r);
    for (int a = ALGO_WINOGRAD2; a <= ALGO_WINOGRAD4; a++) {
        Version v = {.algo = (uint8_t)a, .tile_rows = 4, .tile_vecs = 1, .rows = 4, .columns = 1};
        float  *packed = exact(winograd_pack_bytes(&c.s, c.isa, (Algo)a));
        winograd_pack(&c.s, c.isa, (Algo)a, c.w, packed);
        assert_true(run(&c, &v, packed, 1) < (a == ALGO_WINOGRAD4 ? 1e-5F : 3e-6F));
        free(packed);
    }
    case_end(&c);
}

static void fits(void **state) {
    (void)state;
    ConvShape s = shape(1, 8, 8, 8, 8, 1, 1, 8, 8), t = s;
    assert_true(winograd_fits(&s));
    t.sw = 2;
    assert_false(winograd_fits(&t));
    t = s;
    t.kh = 1;
    assert_false(winograd_fits(&t));
    t = s;
    t.groups = 8;
    assert_false(winograd_fits(&t));
}

static void traffic(void **state) {
    (void)state;
    const CacheSizes big = {32 << 10, 1 << 20, 32 << 20};
    ConvShape        s = shape(1, 256, 14, 14, 256, 1, 1, 14, 14);
    Version          v = {.algo = ALGO_WINOGRAD4,
                          .order = ORDER_INPUT_STATIONARY,
                          .split = SPLIT_BOTH,
                          .tile_rows = 6,
                          .tile_vecs = 2,
                          .rows = 8,
                          .columns = 4};
    size_t           weights = winograd_pack_bytes(&s, &isa_baseline, ALGO_WINOGRAD4);
    Traffic          twice = winograd_traffic(&s, &isa_baseline, &v, &big, 1);
    assert_true(twice.beyond_l2_bytes > 2 * weights && twice.l3_bytes >= weights);
    v.rows = 16;
    Traffic once = winograd_traffic(&s, &isa_baseline, &v, &big, 1);
    assert_true(once.beyond_l2_bytes < 2 * weights && once.l3_bytes == 0);
    v.rows = 8;
    v.columns = 2;
    v.order = ORDER_WEIGHT_STATIONARY;
    Traffic parts = winograd_traffic(&s, &isa_baseline, &v, &big, 2);
    assert_true(parts.beyond_l2_bytes > weights);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits),         cmocka_unit_test(sizes),    cmocka_unit_test(versions),
        cmocka_unit_test(combinations), cmocka_unit_test(accuracy), cmocka_unit_test(traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
