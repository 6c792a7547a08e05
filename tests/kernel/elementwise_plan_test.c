#include "tests/kernel/arrays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/elementwise.h"
#include "kernel/nd_iter.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

// (a * b + c) * 0.5 + a, so that arguments are read in several steps.
static const ElementwiseProgram program = {
    4,
    3,
    {
        {.op = EWISE_MUL, .to = 2, .a = EWISE_ARG, .b = EWISE_ARG + 1},
        {.op = EWISE_ADD, .to = 1, .a = 2, .b = EWISE_ARG + 2},
        {.op = EWISE_AFFINE, .to = 1, .a = 1, .p = 0.5f},
        {.op = EWISE_ADD, .to = 0, .a = 1, .b = EWISE_ARG},
    },
};

static float program_of(float a, float b, float c) { return (a * b + c) * 0.5f + a; }

static float *fresh(Rng *rng, int64_t n) {
    float *x = malloc((size_t)n * sizeof *x + 1);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(rng_unit64(rng) * 2 - 1);
    return x;
}

static void check_parts(const ElementwisePlan *m, const Isa *isa, const float *const *in,
                        const float *want, int64_t n) {
    const uint32_t counts[] = {1, 2, 3, 7};
    for (size_t k = 0; k < COUNT(counts); k++) {
        float *out = malloc((size_t)n * sizeof *out + 1);
        assert_non_null(out);
        for (int64_t i = 0; i < n; i++) out[i] = NAN;
        for (uint32_t p = 0; p < counts[k]; p++)
            ewise_plan_run(m, isa, in, out, (Part){p, counts[k], NULL});
        for (int64_t i = 0; i < n; i++)
            if (!(fabsf(out[i] - want[i]) <= 1e-6f))
                fail_msg("%s, %u parts: number %lld is %.9g, not %.9g", isa->name, counts[k],
                         (long long)i, (double)out[i], (double)want[i]);
        free(out);
    }
}

typedef struct Case {
    Tensor y, args[3];
} Case;

#define SHAPE(...) ARRAY(DT_F32, NULL, __VA_ARGS__)
#define SCALAR     ((Tensor){.dtype = DT_F32})

static void check_plain(const Isa *isa, const Case *c, Rng *rng) {
    const int64_t n = tensor_count(&c->y);
    const Tensor *args[] = {&c->args[0], &c->args[1], &c->args[2]};
    float        *in[3], *want = fresh(rng, n);
    NdIter        w = nd_iter_begin(c->y.rank, c->y.dims);
    for (int i = 0; i < 3; i++) {
        in[i] = fresh(rng, tensor_count(args[i]));
        nd_iter_broadcast(&w, args[i]);
    }
    for (; nd_iter_more(&w); nd_iter_next(&w))
        want[w.at] = program_of(in[0][w.off[0]], in[1][w.off[1]], in[2][w.off[2]]);
    ElementwisePlan m;
    ewise_plan_broadcast(&m, &program, isa, &c->y, args);
    check_parts(&m, isa, (const float *const *)in, want, n);
    for (int i = 0; i < 3; i++) free(in[i]);
    free(want);
}

static void arguments_broadcast_over_plain_tensors(void **state) {
    (void)state;
    const Case cases[] = {
        {SCALAR, {SCALAR, SCALAR, SCALAR}},
        {SHAPE(1), {SHAPE(1), SCALAR, SHAPE(1)}},
        {SHAPE(5), {SHAPE(5), SHAPE(1), SHAPE(5)}},
        {SHAPE(0), {SHAPE(0), SHAPE(1), SCALAR}},
        {SHAPE(3, 0, 4), {SHAPE(3, 0, 4), SHAPE(4), SCALAR}},
        {SHAPE(2, 3, 4, 5), {SHAPE(2, 3, 4, 5), SHAPE(2, 3, 4, 5), SHAPE(2, 3, 4, 5)}},
        {SHAPE(9001), {SHAPE(9001), SHAPE(1), SHAPE(9001)}},
        {SHAPE(100, 4), {SHAPE(100, 4), SHAPE(4), SHAPE(100, 1)}},
        {SHAPE(700, 3), {SHAPE(700, 3), SHAPE(3), SHAPE(3)}},
        {SHAPE(300, 8), {SHAPE(300, 8), SHAPE(8), SHAPE(300, 1)}},
        {SHAPE(300, 16), {SHAPE(300, 16), SHAPE(16), SHAPE(1, 16)}},
        {SHAPE(7, 100), {SHAPE(7, 100), SHAPE(7, 1), SHAPE(100)}},
        {SHAPE(7, 100), {SHAPE(7, 1), SHAPE(1, 100), SCALAR}},
        {SHAPE(2, 3, 40, 5), {SHAPE(2, 3, 40, 5), SHAPE(3, 1, 1), SHAPE(2, 1, 40, 1)}},
        {SHAPE(2, 3, 4, 5), {SHAPE(1, 3, 1, 5), SHAPE(2, 1, 4, 1), SHAPE(4, 5)}},
        {SHAPE(3, 1, 33, 1, 2), {SHAPE(3, 1, 33, 1, 2), SHAPE(33, 1, 1), SHAPE(3, 1, 1, 1, 2)}},
        {SHAPE(2, 2, 2, 2, 2, 2, 2, 3),
         {SHAPE(2, 2, 2, 2, 2, 2, 2, 3), SHAPE(2, 1, 2, 1, 2, 1, 2, 1), SHAPE(1, 2, 1, 2, 1, 3)}},
    };
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    Rng          rng = {1};
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(cases); k++) check_plain(isas[s], &cases[k], &rng);
}

// Offset of element (n, block, pixel, lane) of an argument.
static int64_t place(ElementwiseExtent e, int64_t blocks, int64_t pixels, int64_t lanes,
                     const int64_t at[4]) {
    switch (e) {
    case EWISE_PER_ELEMENT: return ((at[0] * blocks + at[1]) * pixels + at[2]) * lanes + at[3];
    case EWISE_PER_IMAGE_CHANNEL: return (at[0] * blocks + at[1]) * lanes + at[3];
    case EWISE_PER_CHANNEL: return at[1] * lanes + at[3];
    case EWISE_PER_PIXEL: return at[0] * pixels + at[2];
    case EWISE_SINGLE: return 0;
    }
    return 0;
}

static void check_blocked(const Isa *isa, int64_t n, int64_t channels, int64_t pixels,
                          const ElementwiseExtent args[3], Rng *rng) {
    const int64_t lanes = isa->lanes, blocks = (channels + lanes - 1) / lanes;
    const int64_t sizes[] = {n * blocks * pixels * lanes, n * blocks * lanes, blocks * lanes,
                             n * pixels, 1};
    float        *in[3], *want = fresh(rng, sizes[0]);
    for (int i = 0; i < 3; i++) in[i] = fresh(rng, sizes[args[i]]);
    NdIter w = nd_iter_begin(4, (const int64_t[]){n, blocks, pixels, lanes});
    for (; nd_iter_more(&w); nd_iter_next(&w)) {
        float v[3];
        for (int i = 0; i < 3; i++) v[i] = in[i][place(args[i], blocks, pixels, lanes, w.index)];
        want[w.at] = program_of(v[0], v[1], v[2]);
    }
    ElementwisePlan m;
    ewise_plan_blocked(&m, &program, isa, n, channels, pixels, args);
    check_parts(&m, isa, (const float *const *)in, want, sizes[0]);
    for (int i = 0; i < 3; i++) free(in[i]);
    free(want);
}

static void arguments_of_blocked_tensors_are_channels_images_or_pixels(void **state) {
    (void)state;
    const int64_t shapes[][3] = {{1, 3, 1}, {1, 20, 49}, {2, 16, 35}, {3, 33, 1}, {1, 8, 700}};
    const ElementwiseExtent args[][3] = {
        {EWISE_PER_ELEMENT, EWISE_PER_ELEMENT, EWISE_PER_ELEMENT},
        {EWISE_PER_ELEMENT, EWISE_PER_CHANNEL, EWISE_PER_CHANNEL},
        {EWISE_PER_ELEMENT, EWISE_PER_IMAGE_CHANNEL, EWISE_SINGLE},
        {EWISE_PER_ELEMENT, EWISE_PER_PIXEL, EWISE_PER_CHANNEL},
        {EWISE_PER_PIXEL, EWISE_PER_IMAGE_CHANNEL, EWISE_PER_ELEMENT},
    };
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    Rng          rng = {2};
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(shapes); k++)
            for (size_t a = 0; a < COUNT(args); a++)
                check_blocked(isas[s], shapes[k][0], shapes[k][1], shapes[k][2], args[a], &rng);
}

// A transposed argument: its elements are a column apart.
static void arguments_may_have_any_stride(void **state) {
    (void)state;
    enum { R = 37, C = 65 };
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    static float a[R * C], b[C * R], c[1] = {0.25f}, want[R * C];
    int64_t      strides[3][TENSOR_MAX_RANK] = {{C, 1}, {1, R}, {0, 0}};
    Rng          rng = {3};
    for (int i = 0; i < R * C; i++) a[i] = rng_unit(&rng), b[i] = rng_unit(&rng);
    for (int i = 0; i < R * C; i++) want[i] = program_of(a[i], b[i % C * R + i / C], c[0]);
    for (size_t s = 0; s < n_isas; s++) {
        ElementwisePlan m;
        ewise_plan_strided(&m, &program, isas[s], 2, (const int64_t[]){R, C}, strides);
        check_parts(&m, isas[s], (const float *const[]){a, b, c}, want, R * C);
    }
}

static void the_result_may_be_an_argument(void **state) {
    (void)state;
    enum { N = 9000 };
    const ElementwiseProgram twice = {2,
                                      1,
                                      {{.op = EWISE_ADD, .to = 1, .a = EWISE_ARG, .b = EWISE_ARG},
                                       {.op = EWISE_ADD, .a = 1, .b = EWISE_ARG}}};
    const Isa               *isas[3];
    const size_t             n_isas = isas_here(isas);
    static float             x[N];
    for (size_t s = 0; s < n_isas; s++) {
        const Tensor    t = SHAPE(N), *args[] = {&t};
        ElementwisePlan m;
        for (int i = 0; i < N; i++) x[i] = (float)i;
        ewise_plan_broadcast(&m, &twice, isas[s], &t, args);
        for (uint32_t p = 0; p < 3; p++)
            ewise_plan_run(&m, isas[s], (const float *const[]){x}, x, (Part){p, 3, NULL});
        for (int i = 0; i < N; i++) assert_true(x[i] == 3 * (float)i);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_broadcast_over_plain_tensors),
        cmocka_unit_test(arguments_of_blocked_tensors_are_channels_images_or_pixels),
        cmocka_unit_test(arguments_may_have_any_stride),
        cmocka_unit_test(the_result_may_be_an_argument),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
