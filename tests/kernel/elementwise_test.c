#include "tests/kernel/arrays.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/elementwise.h"
#include "kernel/ref/ref_elementwise.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

// An ElementwiseOp and its reference; p and q are the reference's a and b.
typedef struct Unary {
    ElementwiseOp op;
    RefUnary      ref;
    float         p, q, a, b;
} Unary;

static const Unary unary[] = {
    {EWISE_LEAKY, REF_LEAKY_RELU, 0.1f, 0, 0.1f, 0},
    {EWISE_NEG, REF_NEG, 0, 0, 0, 0},
    {EWISE_ABS, REF_ABS, 0, 0, 0, 0},
    {EWISE_SIGN, REF_SIGN, 0, 0, 0, 0},
    {EWISE_SQRT, REF_SQRT, 0, 0, 0, 0},
    {EWISE_RECIP, REF_RECIPROCAL, 0, 0, 0, 0},
    {EWISE_EXP, REF_EXP, 0, 0, 0, 0},
    {EWISE_LOG, REF_LOG, 0, 0, 0, 0},
    {EWISE_ERF, REF_ERF, 0, 0, 0, 0},
    {EWISE_TANH, REF_TANH, 0, 0, 0, 0},
    {EWISE_SIGMOID, REF_SIGMOID, 0, 0, 0, 0},
    {EWISE_HSIGMOID, REF_HARD_SIGMOID, 0.2f, 0.4f, 0.2f, 0.4f},
    {EWISE_HSWISH, REF_HARD_SWISH, 0, 0, 0, 0.5f},
    {EWISE_SILU, REF_SWISH, 0, 0, 1, 0},
    {EWISE_GELU, REF_GELU, 0, 0, 0, 0},
    {EWISE_GELU_TANH, REF_GELU_TANH, 0, 0, 0.044715f, 0},
    {EWISE_ELU, REF_ELU, 0.7f, 0, 0.7f, 0},
    {EWISE_SELU, REF_SELU, 1.7f, 1.1f, 1.7f, 1.1f},
    {EWISE_CELU, REF_CELU, 0.6f, 0, 0.6f, 0},
    {EWISE_SOFTPLUS, REF_SOFTPLUS, 0, 0, 0, 0},
    {EWISE_SOFTSIGN, REF_SOFTSIGN, 0, 0, 0, 0},
    {EWISE_MISH, REF_MISH, 0, 0, 0, 0},
    {EWISE_SHRINK, REF_SHRINK, 0.5f, 0.25f, 0.5f, 0.25f},
    {EWISE_ABOVE, REF_THRESHOLDED_RELU, 0.3f, 0, 0.3f, 0},
    {EWISE_FLOOR, REF_FLOOR, 0, 0, 0, 0},
    {EWISE_CEIL, REF_CEIL, 0, 0, 0, 0},
    {EWISE_ROUND, REF_ROUND, 0, 0, 0, 0},
    {EWISE_SIN, REF_SIN, 0, 0, 0, 0},
    {EWISE_COS, REF_COS, 0, 0, 0, 0},
    {EWISE_TAN, REF_TAN, 0, 0, 0, 0},
    {EWISE_ASIN, REF_ASIN, 0, 0, 0, 0},
    {EWISE_ACOS, REF_ACOS, 0, 0, 0, 0},
    {EWISE_ATAN, REF_ATAN, 0, 0, 0, 0},
    {EWISE_SINH, REF_SINH, 0, 0, 0, 0},
    {EWISE_COSH, REF_COSH, 0, 0, 0, 0},
    {EWISE_ASINH, REF_ASINH, 0, 0, 0, 0},
    {EWISE_ACOSH, REF_ACOSH, 0, 0, 0, 0},
    {EWISE_ATANH, REF_ATANH, 0, 0, 0, 0},
};

static const struct Binary {
    ElementwiseOp op;
    RefBinary     ref;
} binary[] = {
    {EWISE_ADD, REF_ADD}, {EWISE_SUB, REF_SUB}, {EWISE_MUL, REF_MUL}, {EWISE_DIV, REF_DIV},
    {EWISE_MIN, REF_MIN}, {EWISE_MAX, REF_MAX}, {EWISE_POW, REF_POW}, {EWISE_PRELU, REF_PRELU},
};

static const float special[] = {
    0.0f,        -0.0f,   1,          -1,         0.5f,        -0.5f,       1.5f,       2.5f,
    -2.5f,       3,       -3,         6,          -6,          10,          -10,        17,
    -17,         20,      -20,        50,         -50,         86,          -86,        87.2f,
    -87.2f,      88.3f,   88,         88.8f,      -88.8f,      104,         -104,       1e3f,
    -1e3f,       1e10f,   -1e10f,     1e30f,      -1e30f,      FLT_MAX,     -FLT_MAX,   FLT_MIN,
    1e-40f,      -1e-40f, 1e-5f,      -1e-5f,     1e-20f,      -1e-20f,     INFINITY,   -INFINITY,
    NAN,         -NAN,    8388607.5f, 4194303.5f, -8388609.0f, 0.99999994f, 1.0000001f, 0.70710678f,
    0.34657359f,
};

enum { SPECIAL = sizeof special / sizeof *special, RANDOM = 4000, ALL = SPECIAL + RANDOM };

static float numbers[ALL];

// A NaN with a payload, as external data may have.
static float marked_nan(void) {
    const uint32_t bits = 0x7fc12345u;
    float          x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static int setup(void **state) {
    (void)state;
    Rng rng = {7};
    memcpy(numbers, special, sizeof special);
    numbers[0] = marked_nan();
    for (int i = SPECIAL; i < ALL; i++) {
        const double size = i % 4 == 0 ? 100 : i % 4 == 1 ? 10 : i % 4 == 2 ? 1 : 1e-3;
        numbers[i] = (float)((rng_unit64(&rng) * 2 - 1) * size);
    }
    return 0;
}

// Relative to the larger of the result and `size`. Values near the smallest normal float count as
// 0.
static void check_near(const char *name, const Isa *isa, float x, float got, float want,
                       double size) {
    const double room = 2e-6 * fmax(fabs((double)want), size) + (double)FLT_MIN * 200;
    if (got == want || (isnan(got) && isnan(want))) return;
    if (!(fabs((double)got - (double)want) <= room))
        fail_msg("%s (%s) of %.9g is %.9g, not %.9g", name, isa->name, (double)x, (double)got,
                 (double)want);
}

// Where terms cancel, the error is relative to the size of the inputs.
static double size_of(ElementwiseOp op, float x) {
    const double v = fmin(fabs((double)x), 10);
    if (op == EWISE_GELU || op == EWISE_GELU_TANH || op == EWISE_HSWISH) return v * 0.1;
    return op == EWISE_HSIGMOID || op == EWISE_SHRINK ? 0.1 : 0;
}

static void each_unary_is_the_reference(void **state) {
    (void)state;
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    static float got[ALL], want[ALL];
    Tensor       x = ARRAY(DT_F32, numbers, ALL), y = ARRAY(DT_F32, want, ALL);
    for (size_t k = 0; k < COUNT(unary); k++) {
        const Unary             *u = &unary[k];
        const ElementwiseInput   in[] = {{numbers, EWISE_CONTIGUOUS}};
        const ElementwiseProgram c = {
            1, 1, {{.op = (uint8_t)u->op, .a = EWISE_ARG, .p = u->p, .q = u->q}}};
        ref_unary(u->ref, u->a, u->b, &x, &y);
        for (size_t s = 0; s < n_isas; s++) {
            isas[s]->ewise_span(&c, in, got, ALL);
            for (int i = 0; i < ALL; i++)
                check_near(ewise_op_name(u->op), isas[s], numbers[i], got[i], want[i],
                           size_of(u->op, numbers[i]));
        }
    }
}

static void each_binary_is_the_reference(void **state) {
    (void)state;
    enum { PAIRS = SPECIAL * SPECIAL };
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    static float left[PAIRS], right[PAIRS], got[PAIRS], want[PAIRS];
    for (int i = 0; i < PAIRS; i++) left[i] = numbers[i / SPECIAL], right[i] = numbers[i % SPECIAL];
    Tensor a = ARRAY(DT_F32, left, PAIRS), b = ARRAY(DT_F32, right, PAIRS);
    Tensor y = ARRAY(DT_F32, want, PAIRS);
    for (size_t k = 0; k < COUNT(binary); k++) {
        const ElementwiseInput   in[] = {{left, EWISE_CONTIGUOUS}, {right, EWISE_CONTIGUOUS}};
        const ElementwiseProgram c = {
            1, 2, {{.op = (uint8_t)binary[k].op, .a = EWISE_ARG, .b = EWISE_ARG + 1}}};
        ref_binary(binary[k].ref, &a, &b, &y);
        for (size_t s = 0; s < n_isas; s++) {
            isas[s]->ewise_span(&c, in, got, PAIRS);
            for (int i = 0; i < PAIRS; i++)
                check_near(ewise_op_name(binary[k].op), isas[s], left[i], got[i], want[i], 0);
        }
    }
}

static void a_power_of_one_exponent_is_the_reference(void **state) {
    (void)state;
    const float              exponents[] = {0, 1, 2, 3, -1, 0.5f, -0.5f, 2.4f, NAN};
    const Isa               *isas[3];
    const size_t             n_isas = isas_here(isas);
    static float             got[ALL], want[ALL];
    const ElementwiseProgram c = {1, 2, {{.op = EWISE_POW, .a = EWISE_ARG, .b = EWISE_ARG + 1}}};
    Tensor                   a = ARRAY(DT_F32, numbers, ALL), y = ARRAY(DT_F32, want, ALL);
    for (size_t k = 0; k < COUNT(exponents); k++) {
        const ElementwiseInput in[] = {{numbers, EWISE_CONTIGUOUS}, {&exponents[k], EWISE_SCALAR}};
        Tensor                 b = ARRAY(DT_F32, &exponents[k], 1);
        ref_binary(REF_POW, &a, &b, &y);
        for (size_t s = 0; s < n_isas; s++) {
            isas[s]->ewise_span(&c, in, got, ALL);
            for (int i = 0; i < ALL; i++)
                check_near("pow", isas[s], numbers[i], got[i], want[i], 0);
        }
    }
}

static void a_choice_takes_whole_numbers(void **state) {
    (void)state;
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    static float choose[ALL], got[ALL];
    for (int i = 0; i < ALL; i++) choose[i] = i % 3 == 0 ? 0.0f : 1.0f;
    const ElementwiseInput in[] = {{numbers, EWISE_CONTIGUOUS}, {choose, EWISE_CONTIGUOUS}};
    for (size_t s = 0; s < n_isas; s++)
        for (int unless = 0; unless < 2; unless++) {
            const uint8_t            op = unless ? EWISE_UNLESS : EWISE_WHERE;
            const ElementwiseProgram c = {
                1, 2, {{.op = op, .a = EWISE_ARG, .b = EWISE_ARG + 1, .p = -7}}};
            isas[s]->ewise_span(&c, in, got, ALL);
            for (int i = 0; i < ALL; i++) {
                const float want = (choose[i] != 0) == (unless == 0) ? numbers[i] : -7;
                assert_memory_equal(&got[i], &want, sizeof want);
            }
        }
}

static float clip(float x, float lo, float hi) {
    const float y = x < lo ? lo : x;
    return y > hi ? hi : y;
}

static void what_has_no_reference_does_what_it_says(void **state) {
    (void)state;
    const Isa               *isas[3];
    const size_t             n_isas = isas_here(isas);
    const ElementwiseProgram cs[] = {
        {1, 1, {{.op = EWISE_COPY, .a = EWISE_ARG}}},
        {1, 1, {{.op = EWISE_CLIP, .a = EWISE_ARG, .p = -1, .q = 6}}},
        {1, 1, {{.op = EWISE_AFFINE, .a = EWISE_ARG, .p = 2, .q = 0.5f}}},
        {1, 1, {{.op = EWISE_SQUARE, .a = EWISE_ARG}}},
        {1, 1, {{.op = EWISE_QDQ, .a = EWISE_ARG, .p = 0.1f, .q = 3, .lo = -128, .hi = 127}}},
    };
    static float got[ALL];
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(cs); k++) {
            const ElementwiseInput in[] = {{numbers, EWISE_CONTIGUOUS}};
            isas[s]->ewise_span(&cs[k], in, got, ALL);
            for (int i = 0; i < ALL; i++) {
                const float x = numbers[i], q = clip(rintf(x / 0.1f) + 3, -128, 127);
                const float want[] = {x, clip(x, -1, 6), fmaf(x, 2, 0.5f), x * x, (q - 3) * 0.1f};
                check_near(ewise_op_name(cs[k].steps[0].op), isas[s], x, got[i], want[k],
                           k == 2 ? 0.5 : 0);
            }
        }
}

// All argument modes: per-lane scale and shift, clip, a residual and a scalar, then the square.
static const ElementwiseProgram program = {
    6,
    5,
    {
        {.op = EWISE_MUL, .to = 1, .a = EWISE_ARG, .b = EWISE_ARG + 1},
        {.op = EWISE_ADD, .to = 0, .a = 1, .b = EWISE_ARG + 2},
        {.op = EWISE_CLIP, .to = 0, .a = 0, .p = -1, .q = 1},
        {.op = EWISE_AFFINE, .to = 3, .a = EWISE_ARG + 3, .p = 2},
        {.op = EWISE_SUB, .to = 2, .a = 3, .b = EWISE_ARG + 4},
        {.op = EWISE_MUL, .to = 0, .a = 2, .b = 0},
    },
};

static float program_at(const float *x, const float *scale, const float *shift, const float *more,
                        float one, size_t i, size_t lanes) {
    const float t = clip(x[i] * scale[i % lanes] + shift[i % lanes], -1, 1);
    return (more[i] * 2 - one) * t;
}

// Exactly sized arrays, so that the sanitizer catches an access past the end.
static float *fresh(Rng *rng, size_t n) {
    float *x = malloc(n * sizeof *x + (n == 0));
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = (float)(rng_unit64(rng) * 2 - 1);
    return x;
}

static void check_program(const Isa *isa, Rng *rng, size_t n, bool in_place) {
    const size_t lanes = isa->lanes;
    float       *x = fresh(rng, n), *more = fresh(rng, n), *want = fresh(rng, n);
    float       *scale = fresh(rng, lanes), *shift = fresh(rng, lanes), *one = fresh(rng, 1);
    float       *out = in_place ? x : fresh(rng, n);
    for (size_t i = 0; i < n; i++) want[i] = program_at(x, scale, shift, more, *one, i, lanes);
    const ElementwiseInput in[] = {{x, EWISE_CONTIGUOUS},
                                   {scale, EWISE_PER_LANE},
                                   {shift, EWISE_PER_LANE},
                                   {more, EWISE_CONTIGUOUS},
                                   {one, EWISE_SCALAR}};
    isa->ewise_span(&program, in, out, n);
    for (size_t i = 0; i < n; i++) check_near("program", isa, (float)n, out[i], want[i], 1);
    if (!in_place) free(out);
    free(x), free(more), free(want), free(scale), free(shift), free(one);
}

static void steps_share_registers_over_spans_of_any_length(void **state) {
    (void)state;
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    Rng          rng = {3};
    for (size_t s = 0; s < n_isas; s++) {
        for (size_t n = 0; n <= 70; n++) check_program(isas[s], &rng, n, n % 2 == 0);
        for (size_t n = 250; n <= 1100; n += 37) check_program(isas[s], &rng, n, n % 2 == 0);
    }
}

static void a_single_step_takes_every_mode(void **state) {
    (void)state;
    const Isa               *isas[3];
    const size_t             n_isas = isas_here(isas);
    Rng                      rng = {5};
    const ElementwiseProgram c = {1, 2, {{.op = EWISE_SUB, .a = EWISE_ARG, .b = EWISE_ARG + 1}}};
    for (size_t s = 0; s < n_isas; s++)
        for (size_t n = 1; n <= 300; n += n < 70 ? 1 : 61)
            for (int modes = 0; modes < 9; modes++) {
                const size_t lanes = isas[s]->lanes, size[] = {n, 1, lanes};
                const size_t ma = (size_t)modes % 3, mb = (size_t)modes / 3;
                float       *a = fresh(&rng, size[ma]), *b = fresh(&rng, size[mb]);
                float       *out = fresh(&rng, n);
                isas[s]->ewise_span(
                    &c, (ElementwiseInput[]){{a, (ElementwiseMode)ma}, {b, (ElementwiseMode)mb}},
                    out, n);
                for (size_t i = 0; i < n; i++)
                    check_near("sub", isas[s], (float)n, out[i],
                               a[ma == EWISE_CONTIGUOUS ? i
                                 : ma == EWISE_PER_LANE ? i % lanes
                                                        : 0] -
                                   b[mb == EWISE_CONTIGUOUS ? i
                                     : mb == EWISE_PER_LANE ? i % lanes
                                                            : 0],
                               0);
                free(a), free(b), free(out);
            }
}

// Beyond some magnitude these are constant, so that later additions cancel exactly.
static void far_from_zero_shares_are_whole(void **state) {
    (void)state;
    const ElementwiseOp ops[] = {EWISE_ERF, EWISE_TANH, EWISE_SIGMOID, EWISE_GELU, EWISE_EXP};
    const float         x[] = {-INFINITY, -1e30f, -100, 100, 1e30f, INFINITY};
    const float         want[][6] = {{-1, -1, -1, 1, 1, 1},
                                     {-1, -1, -1, 1, 1, 1},
                                     {0, 0, 0, 1, 1, 1},
                                     {NAN, 0, 0, 100, 1e30f, INFINITY},
                                     {0, 0, 0, INFINITY, INFINITY, INFINITY}};
    const Isa          *isas[3];
    const size_t        n_isas = isas_here(isas);
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(ops); k++) {
            const ElementwiseProgram c = {1, 1, {{.op = (uint8_t)ops[k], .a = EWISE_ARG}}};
            float                    got[6];
            isas[s]->ewise_span(&c, (ElementwiseInput[]){{x, EWISE_CONTIGUOUS}}, got, 6);
            for (int i = 0; i < 6; i++)
                if (got[i] != want[k][i] && !(isnan(got[i]) && isnan(want[k][i])))
                    fail_msg("%s of %g is %.9g", ewise_op_name(ops[k]), (double)x[i],
                             (double)got[i]);
        }
}

static void operators_have_names(void **state) {
    (void)state;
    assert_string_equal(ewise_op_name(EWISE_GELU), "gelu");
    assert_string_equal(ewise_op_name(EWISE_OPS), "unknown");
    assert_int_equal(ewise_op_operands(EWISE_PRELU), 2);
    assert_int_equal(ewise_op_operands(EWISE_OPS), 0);
    // Every operator is compared above, rounding to halves in half_convert_test.c, cubes in
    // exported_forms_test.c.
    assert_int_equal(COUNT(unary) + COUNT(binary) + 10, EWISE_OPS);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_unary_is_the_reference),
        cmocka_unit_test(each_binary_is_the_reference),
        cmocka_unit_test(a_power_of_one_exponent_is_the_reference),
        cmocka_unit_test(a_choice_takes_whole_numbers),
        cmocka_unit_test(what_has_no_reference_does_what_it_says),
        cmocka_unit_test(steps_share_registers_over_spans_of_any_length),
        cmocka_unit_test(a_single_step_takes_every_mode),
        cmocka_unit_test(far_from_zero_shares_are_whole),
        cmocka_unit_test(operators_have_names),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
