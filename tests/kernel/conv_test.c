// Direct convolutions against the reference: odd shapes, every version, every epilogue, any parts.
#include "tests/kernel/conv_case.h"

#include <string.h>

#include "kernel/conv.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

enum { MAX_VERSIONS = 64 };

typedef struct Shape {
    ConvShape s;
    bool      plain;
} Shape;

// n ic ih iw, oc oh ow, kh kw, sh sw, dh dw, pt pl, groups, then id od kd sd dd pf.
static const Shape shapes[] = {
    {{1, 16, 5, 7, 24, 5, 7, 1, 1, 1, 1, 1, 1, 0, 0, 1}, false},
    {{2, 19, 9, 6, 33, 9, 6, 1, 1, 1, 1, 1, 1, 0, 0, 1}, false},
    {{1, 40, 7, 7, 17, 4, 4, 1, 1, 2, 2, 1, 1, 0, 0, 1}, false},
    {{3, 24, 1, 1, 70, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1}, false},
    {{1, 5, 1, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1}, false},
    {{1, 24, 10, 9, 32, 10, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1}, false},
    {{2, 11, 8, 8, 13, 4, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1}, false},
    {{1, 24, 12, 13, 40, 8, 9, 3, 3, 1, 1, 2, 2, 0, 0, 1}, false},
    {{1, 17, 9, 11, 20, 9, 11, 3, 5, 1, 1, 3, 2, 3, 4, 1}, false},
    {{1, 8, 6, 30, 9, 6, 12, 1, 7, 1, 2, 1, 1, 0, 0, 1}, false},
    {{1, 32, 1, 50, 16, 1, 25, 1, 4, 1, 2, 1, 1, 0, 1, 1}, false},
    {{1, 16, 7, 7, 40, 1, 1, 7, 7, 1, 1, 1, 1, 0, 0, 1}, false},
    {{2, 9, 3, 4, 21, 1, 1, 3, 4, 1, 1, 1, 1, 0, 0, 1}, false},
    {{1, 64, 6, 6, 64, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 2}, false},
    {{1, 64, 6, 6, 32, 3, 3, 3, 3, 2, 2, 1, 1, 1, 1, 4}, false},
    {{1, 16, 6, 5, 24, 6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 8}, false},
    {{2, 12, 6, 5, 12, 6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 12}, false},
    {{1, 96, 4, 5, 48, 4, 5, 1, 1, 1, 1, 1, 1, 0, 0, 12}, false},
    {{1, 10, 6, 5, 15, 6, 5, 3, 3, 1, 1, 1, 1, 1, 1, 5}, false},
    {{1, 3, 21, 23, 24, 11, 12, 7, 7, 2, 2, 1, 1, 3, 3, 1}, true},
    {{2, 3, 17, 16, 8, 9, 8, 3, 3, 2, 2, 1, 1, 1, 0, 1}, true},
    {{1, 1, 20, 20, 11, 18, 18, 3, 3, 1, 1, 1, 1, 0, 0, 1}, true},
    {{1, 4, 30, 31, 12, 5, 6, 11, 11, 4, 4, 1, 1, 0, 0, 1}, true},
    {{1, 3, 12, 12, 12, 8, 8, 3, 3, 1, 1, 2, 2, 0, 0, 1}, true},
    {{1, 3, 21, 23, 24, 11, 12, 7, 7, 2, 2, 1, 1, 3, 3, 1}, false},
    {{1, 9, 2, 2, 10, 5, 6, 2, 2, 1, 1, 1, 1, 2, 3, 1}, false},
    {{2, 19, 5, 6, 33, 5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 4, 3, 1, 1, 1}, false},
    {{1, 16, 6, 5, 24, 6, 5, 1, 1, 1, 1, 1, 1, 0, 0, 1, 7, 3, 3, 2, 1, 0}, false},
    {{1, 24, 7, 8, 17, 3, 3, 3, 3, 2, 2, 1, 1, 0, 0, 1, 9, 5, 2, 1, 4, 0}, false},
    {{2, 40, 4, 4, 20, 2, 2, 1, 1, 2, 2, 1, 1, 0, 0, 1, 5, 3, 1, 2, 1, 0}, false},
    {{1, 32, 5, 5, 32, 5, 5, 3, 3, 1, 1, 1, 1, 1, 1, 4, 3, 4, 2, 1, 1, 1}, false},
    {{1, 9, 2, 3, 12, 1, 1, 2, 3, 1, 1, 1, 1, 0, 0, 1, 2, 1, 2, 1, 1, 0}, false},
    {{2, 3, 9, 8, 16, 5, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 6, 6, 3, 1, 1, 1}, true},
    {{1, 2, 6, 7, 9, 4, 5, 3, 3, 1, 1, 1, 1, 0, 0, 1, 5, 2, 3, 2, 1, 0}, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const uint32_t part_counts[] = {1, 2, 3, 7};

// Parts of the epilogue: a bit set.
enum { WITH_BIAS = 1, WITH_ADD = 2, WITH_CLIP = 4, WITH_PROGRAM = 8, FINISHES = 16 };

// A case on one instruction set.
typedef struct Ready {
    const Isa *isa;
    ConvShape  shape;
    bool       plain;
    ConvCase   c;
    float     *x, *packed, *bias, *add, *y;
    size_t     pixels, n_y;
} Ready;

static Ready ready_new(const Isa *isa, const Shape *shape, const ConvCase *c, Rng *rng) {
    const ConvShape *s = &shape->s;
    Ready            r = {.isa = isa, .shape = *s, .plain = shape->plain, .c = *c};
    size_t           lanes = isa->lanes, vecs = (s->oc + lanes - 1) / lanes;
    r.pixels = conv_case_out(s);
    r.n_y = s->n * vecs * r.pixels * lanes;
    size_t in = conv_case_in(s), block = shape->plain ? 1 : lanes;
    r.x = conv_case_blocked(c->x, s->n, s->ic, in, block, NAN);
    r.packed = conv_case_aligned(conv_pack_bytes(s, isa, r.plain) / sizeof(float));
    conv_pack(s, isa, r.plain, c->w, r.packed);
    r.bias = conv_case_blocked(c->bias, 1, s->oc, 1, lanes, 0);
    r.add = conv_case_numbers(rng, r.n_y);
    r.y = conv_case_aligned(r.n_y);
    return r;
}

static void ready_free(Ready *r) {
    free(r->x);
    free(r->packed);
    free(r->bias);
    free(r->add);
    free(r->y);
}

// The program is max(a * 2 + bias, add): one argument of each mode.
static const ElementwiseProgram program = {
    .n_steps = 3,
    .n_args = 4,
    .steps = {{.op = EWISE_MUL, .to = 0, .a = EWISE_ARG, .b = EWISE_ARG + 3},
              {.op = EWISE_ADD, .to = 0, .a = 0, .b = EWISE_ARG + 1},
              {.op = EWISE_MAX, .to = 0, .a = 0, .b = EWISE_ARG + 2}}};

static float wanted(const Ready *r, uint32_t epilogue, size_t image, size_t channel, size_t pixel,
                    size_t at) {
    const ConvShape *s = &r->c.shape;
    float            sum = r->c.y[(image * s->oc + channel) * r->pixels + pixel];
    if ((epilogue & WITH_BIAS) == 0) sum -= r->c.bias[channel];
    if (epilogue & WITH_ADD) sum += r->add[at];
    if (epilogue & WITH_CLIP) sum = fminf(fmaxf(sum, -0.1F), 0.3F);
    if (epilogue & WITH_PROGRAM) sum = fmaxf(sum * 2 + r->c.bias[channel], r->add[at]);
    return sum;
}

static void compare(const Ready *r, const Version *v, uint32_t epilogue, uint32_t parts) {
    const ConvShape *s = &r->c.shape;
    size_t           lanes = r->isa->lanes, vecs = (s->oc + lanes - 1) / lanes;
    for (size_t i = 0; i < r->n_y; i++) {
        size_t pixel = i / lanes % r->pixels, vec = i / lanes / r->pixels;
        size_t channel = vec % vecs * lanes + i % lanes;
        if (channel >= s->oc) continue;
        float want = wanted(r, epilogue, vec / vecs, channel, pixel, i);
        if (fabsf(r->y[i] - want) <= 1e-4F) continue;
        fail_msg("%s ic %u oc %u k %ux%u, tile %ux%u blocks %u %u %u pack %u order %u split %u, "
                 "epilogue %u, %u parts: number %zu is %g, not %g",
                 r->isa->name, s->ic, s->oc, s->kh, s->kw, v->tile_rows, v->tile_vecs, v->rows,
                 v->columns, v->depth, v->pack, v->order, v->split, epilogue, parts, i,
                 (double)r->y[i], (double)want);
    }
}

static void run(const Ready *r, const Version *v, uint32_t epilogue, uint32_t parts) {
    static const float two = 2;
    Epilogue           f = {.bias = epilogue & WITH_BIAS ? r->bias : NULL,
                            .add = epilogue & WITH_ADD ? r->add : NULL,
                            .lo = epilogue & WITH_CLIP ? -0.1F : -INFINITY,
                            .hi = epilogue & WITH_CLIP ? 0.3F : INFINITY,
                            .program = epilogue & WITH_PROGRAM ? &program : NULL,
                            .args = {[1] = {r->bias, EWISE_PER_LANE},
                                     [2] = {r->add, EWISE_CONTIGUOUS},
                                     [3] = {&two, EWISE_SCALAR}}};
    size_t             scratch = conv_scratch(&r->shape, r->isa, v);
    Conv               conv = {r->shape, *v, f, r->x, r->packed, r->y};
    for (size_t i = 0; i < r->n_y; i++) r->y[i] = NAN;
    for (uint32_t i = 0; i < parts; i++) {
        float *own = conv_case_aligned(scratch / sizeof(float));
        memset(own, 0xff, scratch);
        Part part = {.index = i, .count = parts, .scratch = own};
        r->isa->conv(&conv, part);
        free(own);
    }
    compare(r, v, epilogue, parts);
}

// Versions that divide no shape evenly, so that every loop has a remainder.
static Version random_version(bool plain, Rng *r) {
    static const uint8_t tiles[][2] = {{6, 2}, {4, 3}, {3, 4}, {12, 1}, {5, 2}, {1, 4}, {2, 3}};
    const uint8_t       *tile = tiles[rng_below(r, sizeof tiles / sizeof *tiles)];
    return (Version){.algo = ALGO_DIRECT,
                     .tile_rows = tile[0],
                     .tile_vecs = tile[1],
                     .order = (uint8_t)rng_below(r, 2),
                     .split = (uint8_t)rng_below(r, 3),
                     .pack = (uint8_t)(rng_below(r, 2) * CONV_STAGED + plain * CONV_PLAIN),
                     .rows = (uint16_t)rng_below(r, 12),
                     .columns = (uint16_t)rng_below(r, 6),
                     .depth = (uint16_t)(rng_below(r, 4) * 8)};
}

static void check_shape(const Isa *isa, const Shape *shape, Rng *rng) {
    ConvCase c = conv_case_new(&shape->s, rng);
    Ready    r = ready_new(isa, shape, &c, rng);
    for (uint32_t i = 0; i < 24; i++) {
        Version v = random_version(r.plain, rng);
        run(&r, &v, (uint32_t)rng_below(rng, FINISHES), part_counts[i % 4]);
    }
    Version    all[MAX_VERSIONS];
    CacheSizes caches = {32 << 10, 1 << 20, 32 << 20};
    uint32_t   n = conv_versions(&r.shape, isa, r.plain, &caches, all, MAX_VERSIONS);
    assert_in_range(n, 1, MAX_VERSIONS);
    for (uint32_t i = 0; i < n; i++) run(&r, &all[i], i % FINISHES, part_counts[i / FINISHES % 4]);
    ready_free(&r);
    conv_case_free(&c);
}

static void test_shapes(void **state) {
    (void)state;
    const Isa *isas[3];
    size_t     n = isas_here(isas);
    Rng        r = {7};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < SHAPES; k++) check_shape(isas[i], &shapes[k], &r);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
