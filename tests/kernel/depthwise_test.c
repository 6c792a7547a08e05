// Depthwise convolution against the reference: every method, version and instruction set.
#include "tests/kernel/blocked.h"
#include "tests/kernel/isas.h"

#include "base/arena.h"
#include "kernel/depthwise.h"
#include "kernel/ref/ref_conv.h"
#include "tests/runner.h"

typedef struct Case {
    uint32_t n, c, ih, iw, kh, kw, sh, sw, dh, dw, pt, pl, pb, pr;
} Case;

static const Case cases[] = {
    {1, 8, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},     {1, 13, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {2, 5, 9, 17, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},    {1, 16, 15, 30, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1},
    {1, 9, 11, 19, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},   {2, 8, 14, 14, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2},
    {1, 3, 6, 6, 5, 5, 2, 2, 1, 1, 1, 1, 2, 2},     {1, 8, 1, 40, 1, 3, 1, 1, 1, 1, 0, 1, 0, 1},
    {1, 4, 5, 4, 3, 3, 1, 1, 1, 1, 6, 9, 4, 8},     {1, 8, 3, 2, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},
    {1, 17, 9, 23, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3},   {1, 8, 12, 12, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0},
    {1, 6, 20, 21, 3, 3, 1, 1, 2, 3, 2, 3, 2, 3},   {1, 8, 17, 16, 4, 4, 3, 3, 1, 1, 2, 1, 3, 4},
    {2, 11, 5, 8, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},    {1, 8, 1, 70, 1, 31, 1, 2, 1, 1, 0, 15, 0, 15},
    {1, 2, 30, 1, 3, 1, 1, 1, 1, 1, 1, 0, 1, 0},    {1, 8, 6, 6, 3, 3, 3, 1, 2, 1, 3, 2, 3, 0},
    {1, 8, 8, 120, 9, 9, 1, 1, 4, 1, 16, 4, 16, 4}, {1, 24, 33, 57, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
};

static uint32_t size_out(uint32_t in, uint32_t k, uint32_t s, uint32_t d, uint32_t pads) {
    return (in + pads - (k - 1) * d - 1) / s + 1;
}

static ConvShape shape_of(const Case *c) {
    return (ConvShape){
        .n = c->n,
        .ic = c->c,
        .ih = c->ih,
        .iw = c->iw,
        .oc = c->c,
        .oh = size_out(c->ih, c->kh, c->sh, c->dh, c->pt + c->pb),
        .ow = size_out(c->iw, c->kw, c->sw, c->dw, c->pl + c->pr),
        .kh = c->kh,
        .kw = c->kw,
        .sh = c->sh,
        .sw = c->sw,
        .dh = c->dh,
        .dw = c->dw,
        .pt = c->pt,
        .pl = c->pl,
        .groups = c->c,
    };
}

// One layer with a full epilogue, in plain layout.
typedef struct Layer {
    ConvShape s;
    size_t    in, out;  // pixels
    float    *x, *w, *bias, *add, *scale, *want;
} Layer;

static void reference(const Case *c, Layer *l) {
    const ConvShape *s = &l->s;
    Arena            a;
    RefConv          p = {.window = {2,
                                     {s->ih, s->iw},
                                     {s->oh, s->ow},
                                     {s->kh, s->kw},
                                     {s->sh, s->sw},
                                     {s->dh, s->dw},
                                     {s->pt, s->pl},
                                     {c->pb, c->pr}},
                          .group = s->groups};
    Tensor           x = ARRAY(DT_F32, l->x, s->n, s->ic, s->ih, s->iw);
    Tensor           w = ARRAY(DT_F32, l->w, s->oc, 1, s->kh, s->kw);
    Tensor           y = ARRAY(DT_F32, l->want, s->n, s->oc, s->oh, s->ow);
    assert_int_equal(arena_init(&a, 1 << 26), ERR_OK);
    assert_int_equal(ref_conv(&p, &x, &w, NULL, &y, &a), ERR_OK);
    arena_finish(&a);
}

static Layer layer_new(const Case *c, Rng *r) {
    Layer  l = {.s = shape_of(c)};
    size_t planes = (size_t)l.s.n * l.s.oc;
    l.in = (size_t)l.s.ih * l.s.iw, l.out = (size_t)l.s.oh * l.s.ow;
    l.x = blocked_random(planes * l.in, r);
    l.w = blocked_random((size_t)l.s.oc * l.s.kh * l.s.kw, r);
    l.bias = blocked_random(64, r);
    l.scale = blocked_random(64, r);
    l.add = blocked_random(planes * l.out, r);
    l.want = blocked_new(planes * l.out);
    reference(c, &l);
    return l;
}

static void layer_free(Layer *l) {
    free(l->x), free(l->w), free(l->bias), free(l->scale), free(l->add), free(l->want);
}

// clip(sum + bias + add) * scale of its channel + add
static float finished(const Layer *l, size_t i) {
    size_t c = i / l->out % l->s.oc;
    float  v = l->want[i] + l->bias[c] + l->add[i];
    return fminf(fmaxf(v, -0.5F), 0.75F) * l->scale[c] + l->add[i];
}

static const ElementwiseProgram scale_and_add = {
    .n_steps = 2,
    .n_args = 3,
    .steps = {{EWISE_MUL, 0, EWISE_ARG, EWISE_ARG + 1, 0, 0, 0, 0},
              {EWISE_ADD, 0, 0, EWISE_ARG + 2, 0, 0, 0, 0}}};

static void run(const Isa *isa, Depthwise *d, uint32_t parts) {
    size_t bytes = depthwise_scratch(&d->shape, isa, &d->version);
    for (uint32_t i = 0; i < parts; i++) {
        void *scratch = NULL;
        assert_int_equal(posix_memalign(&scratch, TENSOR_ALIGN, bytes), 0);
        isa->depthwise(d, (Part){i, parts, scratch});
        free(scratch);
    }
}

static void check(const Isa *isa, const Layer *l, Version v, uint32_t parts, bool with_finish) {
    const ConvShape *s = &l->s;
    size_t n = s->n, c = s->oc, lanes = isa->lanes, padded = (c + lanes - 1) / lanes * lanes;
    float *x = blocked_from(l->x, n, c, l->in, lanes),
          *add = blocked_from(l->add, n, c, l->out, lanes);
    float *bias = blocked_from(l->bias, 1, c, 1, lanes),
          *scale = blocked_from(l->scale, 1, c, 1, lanes);
    float *w = blocked_new(depthwise_weight_count(s, isa));
    float *y = blocked_new(n * padded * l->out), *want = blocked_new(n * c * l->out);
    depthwise_pack(s, isa, l->w, w);
    Depthwise d = {.shape = *s,
                   .version = v,
                   .x = x,
                   .weights = w,
                   .y = y,
                   .epilogue = {.lo = -INFINITY, .hi = INFINITY}};
    if (with_finish)
        d.epilogue = (Epilogue){
            bias,
            add,
            -0.5F,
            0.75F,
            &scale_and_add,
            {{NULL, EWISE_CONTIGUOUS}, {scale, EWISE_PER_LANE}, {add, EWISE_CONTIGUOUS}}};
    run(isa, &d, parts);
    for (size_t i = 0; i < n * c * l->out; i++) want[i] = with_finish ? finished(l, i) : l->want[i];
    blocked_equal(y, want, n, c, l->out, lanes, 2e-5);
    free(x), free(add), free(bias), free(scale), free(w), free(y), free(want);
}

static void every_case(void **state) {
    (void)state;
    static const uint32_t parts[] = {1, 2, 3, 7};
    const CacheSizes      caches = {32 << 10, 1 << 20, 32 << 20};
    const Isa            *isas[3];
    size_t                n = isas_here(isas);
    Rng                   r = {7};
    for (size_t k = 0; k < COUNT(cases); k++) {
        Layer l = layer_new(&cases[k], &r);
        for (size_t i = 0; i < n; i++) {
            Version  v[16];
            uint32_t count = depthwise_versions(&l.s, isas[i], &caches, v, COUNT(v));
            assert_true(count >= 1);
            for (uint32_t j = 0; j < count; j++)
                check(isas[i], &l, v[j], parts[(j + k) % 4], (j + k) % 2 == 0);
            check(isas[i], &l, v[0], parts[k % 4], k % 2 != 0);
        }
        layer_free(&l);
    }
}

// Every tile width, inside and at the edges.
static void every_tile(void **state) {
    (void)state;
    const Isa *isas[3];
    size_t     n = isas_here(isas);
    Rng        r = {8};
    for (uint32_t tile = 1; tile <= 8; tile++)
        for (uint32_t k = 3; k <= 9; k += 2)
            for (uint32_t step = 1; step <= 3; step++) {
                Case  c = {1, 8, 4, 5 * tile * step - 1, 3, k, 1, step, 1, 1, 1, k / 2, 1, k / 2};
                Layer l = layer_new(&c, &r);
                for (size_t i = 0; i < n; i++)
                    check(isas[i], &l, (Version){.tile_rows = (uint8_t)tile, .rows = 3}, 2, true);
                layer_free(&l);
            }
}

static void versions_say_what_they_ask(void **state) {
    (void)state;
    const CacheSizes caches = {32 << 10, 1 << 20, 32 << 20};
    ConvShape        s = shape_of(&(Case){1, 96, 112, 112, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1});
    Version          v[16];
    uint32_t         count = depthwise_versions(&s, &isa_baseline, &caches, v, COUNT(v));
    assert_true(count > 3 && depthwise_versions(&s, &isa_baseline, &caches, v, 2) == 2);
    for (uint32_t i = 0; i < count; i++) {
        Traffic t = depthwise_traffic(&s, &isa_baseline, &v[i], &caches, 2);
        size_t  both = (size_t)96 * 4 * (112 * 112 + 56 * 56);
        assert_true(t.beyond_l2_bytes > both && t.beyond_l2_bytes < both * 5 / 4);
        assert_true(depthwise_tasks(&s, &isa_baseline, &v[i]) >= 12);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),
        cmocka_unit_test(every_tile),
        cmocka_unit_test(versions_say_what_they_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
