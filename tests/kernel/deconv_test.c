// Transposed convolutions against the reference: strides, dilation, crops, groups, depth, every
// version, any parts.
#include "tests/kernel/conv_case.h"

#include <string.h>

#include "kernel/deconv.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { MAX_VERSIONS = 32, VARIANTS = 4 };

// n ic ih iw, oc oh ow, kh kw, sh sw, dh dw, pt pl, groups, and id od kd sd dd pf.
static const ConvShape shapes[] = {
    {1, 16, 5, 7, 24, 10, 14, 2, 2, 2, 2, 1, 1, 0, 0, 1},
    {2, 11, 5, 6, 9, 9, 11, 3, 3, 2, 2, 1, 1, 1, 1, 1},
    {1, 24, 7, 7, 17, 14, 14, 4, 4, 2, 2, 1, 1, 1, 1, 1},
    {1, 8, 6, 9, 33, 8, 11, 3, 3, 1, 1, 1, 1, 0, 0, 1},
    {1, 5, 3, 4, 3, 12, 20, 2, 3, 4, 5, 1, 1, 0, 0, 1},
    {1, 19, 4, 4, 8, 13, 10, 3, 2, 3, 2, 2, 3, 0, 1, 1},
    {1, 9, 1, 20, 40, 1, 40, 1, 4, 1, 2, 1, 1, 0, 1, 1},
    {1, 3, 3, 3, 10, 6, 6, 3, 3, 2, 2, 1, 1, 1, 1, 1},
    {2, 32, 1, 1, 16, 4, 4, 4, 4, 1, 1, 1, 1, 0, 0, 1},
    {1, 8, 4, 4, 8, 1, 1, 3, 3, 2, 2, 1, 1, 4, 4, 1},
    {1, 10, 4, 5, 7, 30, 38, 16, 16, 8, 8, 1, 1, 5, 5, 1},
    {1, 37, 5, 6, 37, 10, 12, 4, 4, 2, 2, 1, 1, 1, 1, 37},
    {2, 48, 3, 4, 32, 6, 8, 2, 2, 2, 2, 1, 1, 0, 0, 2},
    {1, 30, 4, 4, 20, 9, 7, 3, 3, 2, 2, 1, 1, 0, 1, 5},
    {1, 6, 4, 5, 40, 4, 9, 1, 3, 1, 2, 1, 1, 0, 1, 2},
    {1, 20, 4, 5, 18, 8, 10, 2, 2, 2, 2, 1, 1, 0, 0, 1, 3, 6, 2, 2, 1, 0},
    {2, 9, 3, 4, 5, 6, 8, 4, 4, 2, 2, 1, 1, 1, 1, 1, 4, 8, 4, 2, 1, 1},
    {1, 17, 3, 3, 33, 5, 5, 3, 3, 1, 1, 1, 1, 0, 0, 1, 3, 12, 2, 5, 1, 0},
    {1, 18, 3, 3, 12, 5, 7, 3, 3, 2, 2, 1, 1, 1, 0, 6, 4, 9, 3, 2, 2, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct Ready {
    const Isa *isa;
    ConvCase   c;
    float     *x, *packed, *bias, *add, *y;
    size_t     pixels, n_y;
} Ready;

static void answer(ConvCase *c) {
    const ConvShape *s = &c->shape;
    const bool       deep = s->kd > 0;
    const uint32_t   kd = deep ? s->kd : 1, id = deep ? s->id : 1, od = deep ? s->od : 1;
    RefConv          p = {.group = s->groups,
                          .window = {.rank = 3,
                                     .in = {od, s->oh, s->ow},
                                     .out = {id, s->ih, s->iw},
                                     .kernel = {kd, s->kh, s->kw},
                                     .stride = {deep ? s->sd : 1, s->sh, s->sw},
                                     .dilation = {deep ? s->dd : 1, s->dh, s->dw},
                                     .pad = {s->pf, s->pt, s->pl}}};
    Tensor x = {.dtype = DT_F32, .rank = 5, .dims = {s->n, s->ic, id, s->ih, s->iw}, .data = c->x};
    Tensor w = {.dtype = DT_F32,
                .rank = 5,
                .dims = {s->ic, s->oc / s->groups, kd, s->kh, s->kw},
                .data = c->w};
    Tensor b = {.dtype = DT_F32, .rank = 1, .dims = {s->oc}, .data = c->bias};
    Tensor y = {.dtype = DT_F32, .rank = 5, .dims = {s->n, s->oc, od, s->oh, s->ow}, .data = c->y};
    Arena  a = {0};
    assert_int_equal(arena_init(&a, (size_t)1 << 32), ERR_OK);
    assert_int_equal(ref_conv_transpose(&p, &x, &w, &b, &y, &a), ERR_OK);
    arena_finish(&a);
}

static Ready ready_new(const Isa *isa, const ConvShape *s, Rng *rng) {
    Ready  r = {.isa = isa, .c = conv_case_numbered(s, rng)};
    size_t lanes = isa->lanes, vecs = (s->oc + lanes - 1) / lanes;
    answer(&r.c);
    r.pixels = conv_case_out(s);
    r.n_y = s->n * vecs * r.pixels * lanes;
    r.x = conv_case_blocked(r.c.x, s->n, s->ic, conv_case_in(s), lanes, NAN);
    r.packed = conv_case_aligned(deconv_pack_bytes(s, isa) / sizeof(float));
    deconv_pack(s, isa, r.c.w, r.packed);
    r.bias = conv_case_blocked(r.c.bias, 1, s->oc, 1, lanes, 0);
    r.add = conv_case_numbers(rng, r.n_y);
    r.y = conv_case_aligned(r.n_y);
    return r;
}

static void ready_free(Ready *r) {
    float *all[] = {r->x, r->packed, r->bias, r->add, r->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    conv_case_free(&r->c);
}

// Variants: sums; with a bias; add and clip in place; a program with arguments of all modes.
static float wanted(const Ready *r, uint32_t variant, size_t plain, size_t channel, size_t at) {
    float sum = r->c.y[plain] - (variant == 0 ? r->c.bias[channel] : 0);
    if (variant == 2) sum = fminf(fmaxf(sum + r->add[at], -0.1F), 0.3F);
    if (variant == 3) sum = fmaxf(sum + r->c.bias[channel], r->add[at]);
    return sum;
}

static void compare(const Ready *r, const Version *v, uint32_t variant, uint32_t parts) {
    const ConvShape *s = &r->c.shape;
    size_t           lanes = r->isa->lanes, vecs = (s->oc + lanes - 1) / lanes;
    for (size_t i = 0; i < r->n_y; i++) {
        size_t pixel = i / lanes % r->pixels, vec = i / lanes / r->pixels;
        size_t channel = vec % vecs * lanes + i % lanes;
        if (channel >= s->oc) continue;
        size_t plain = (vec / vecs * s->oc + channel) * r->pixels + pixel;
        float  want = wanted(r, variant, plain, channel, i);
        if (fabsf(r->y[i] - want) <= 1e-4F) continue;
        fail_msg("%s ic %u oc %u k %ux%u s %ux%u, tile %ux%u blocks %u %u, variant %u, %u parts: "
                 "number %zu is %g, not %g",
                 r->isa->name, s->ic, s->oc, s->kh, s->kw, s->sh, s->sw, v->tile_rows, v->tile_vecs,
                 v->rows, v->columns, variant, parts, i, (double)r->y[i], (double)want);
    }
}

static void run(const Ready *r, const Version *v, uint32_t variant, uint32_t parts) {
    static const ElementwiseProgram program = {
        .n_steps = 2,
        .n_args = 3,
        .steps = {{.op = EWISE_ADD, .to = 0, .a = EWISE_ARG, .b = EWISE_ARG + 1},
                  {.op = EWISE_MAX, .to = 0, .a = 0, .b = EWISE_ARG + 2}}};
    Epilogue f = {.bias = variant > 0 ? r->bias : NULL,
                  .add = variant == 2 ? r->y : NULL,
                  .lo = variant == 2 ? -0.1F : -INFINITY,
                  .hi = variant == 2 ? 0.3F : INFINITY,
                  .program = variant == 3 ? &program : NULL,
                  .args = {[1] = {r->bias, EWISE_PER_LANE}, [2] = {r->add, EWISE_CONTIGUOUS}}};
    Deconv   c = {r->c.shape, *v, f, r->x, r->packed, r->y};
    size_t   scratch = deconv_scratch(&r->c.shape, r->isa, v);
    for (size_t i = 0; i < r->n_y; i++) r->y[i] = variant == 2 ? r->add[i] : NAN;
    for (uint32_t i = 0; i < parts; i++) {
        float *own = conv_case_aligned(scratch / sizeof(float));
        memset(own, 0xff, scratch);
        r->isa->deconv(&c, (Part){.index = i, .count = parts, .scratch = own});
        free(own);
    }
    compare(r, v, variant, parts);
}

static void check_shape(const Isa *isa, const ConvShape *s, Rng *rng) {
    static const uint32_t part_counts[] = {1, 2, 3, 7};
    CacheSizes            caches = {32 << 10, 1 << 20, 32 << 20};
    Version               all[MAX_VERSIONS];
    Ready                 r = ready_new(isa, s, rng);
    uint32_t              n = deconv_versions(s, isa, &caches, all, MAX_VERSIONS - 8);
    assert_in_range(n, 1, MAX_VERSIONS - 8);
    for (uint32_t i = 0; i < 8; i++)
        all[n++] = (Version){.tile_rows = (uint8_t)(1 + rng_below(rng, 12)),
                             .tile_vecs = (uint8_t)(1 + rng_below(rng, 4)),
                             .rows = (uint16_t)rng_below(rng, 4),
                             .columns = (uint16_t)rng_below(rng, 4)};
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < VARIANTS; k++) run(&r, &all[i], k, part_counts[(i + k) % 4]);
    ready_free(&r);
}

static void test_shapes(void **state) {
    (void)state;
    const Isa *isas[3];
    size_t     n = isas_here(isas);
    Rng        r = {11};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < SHAPES; k++) check_shape(isas[i], &shapes[k], &r);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
