#include "tests/kernel/arrays.h"

#include <math.h>

#include "base/fp.h"
#include "kernel/ref/ref_elementwise.h"
#include "tests/runner.h"

static void edges_of_reals_follow_ieee(void **state) {
    (void)state;
    const float in[] = {NAN, INFINITY, -INFINITY, -0.0f, -2, 3};
    float       out[6];
    Tensor      x = ARRAY(DT_F32, in, 6), y = ARRAY(DT_F32, out, 6);
    ref_unary(REF_RELU, 0, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){NAN, INFINITY, 0, 0, 0, 3}));
    ref_unary(REF_ABS, 0, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){NAN, INFINITY, INFINITY, 0, 2, 3}));
    ref_unary(REF_SIGMOID, 0, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){NAN, 1, 0, 0.5f, 0.119202922f, 0.952574127f}));
    ref_unary(REF_SOFTPLUS, 0, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){NAN, INFINITY, 0, 0.693147181f, 0.126928011f, 3.04858735f}));
    ref_unary(REF_SIGN, 0, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){NAN, 1, -1, 0, -1, 1}));
    ref_unary(REF_HARD_SIGMOID, 0.2f, 0.5f, &x, &y);
    ASSERT_REALS(out, ((float[]){NAN, 1, 0, 0.5f, 0.1f, 1}));
    ref_unary(REF_LOG, 0, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){NAN, INFINITY, NAN, -INFINITY, NAN, 1.09861229f}));
}

static void activations_match_their_definitions(void **state) {
    (void)state;
    const float in[] = {-1.5f, -0.25f, 0.75f, 2};
    float       out[4];
    Tensor      x = ARRAY(DT_F32, in, 4), y = ARRAY(DT_F32, out, 4);
    ref_unary(REF_GELU, 0, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){-0.100210796f, -0.100323408f, 0.580029497f, 1.95449974f}));
    ref_unary(REF_GELU_TANH, 0.044715f, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){-0.100428423f, -0.100324649f, 0.579960555f, 1.95459769f}));
    ref_unary(REF_ELU, 2, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){-1.55373968f, -0.442398434f, 0.75f, 2}));
    ref_unary(REF_CELU, 2, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){-1.05526689f, -0.235006195f, 0.75f, 2}));
    ref_unary(REF_SELU, 2, 3, &x, &y);
    ASSERT_REALS(out, ((float[]){-4.66121904f, -1.3271953f, 2.25f, 6}));
    ref_unary(REF_SHRINK, 0.5f, 0.125f, &x, &y);
    ASSERT_REALS(out, ((float[]){-1.375f, 0, 0.625f, 1.875f}));
    ref_unary(REF_MISH, 0, 0, &x, &y);
    ASSERT_REALS(out, ((float[]){-0.298099742f, -0.129926964f, 0.610018335f, 1.94395896f}));
    ref_unary(REF_HARD_SWISH, 0, 0.5f, &x, &y);
    ASSERT_REALS(out, ((float[]){-0.375f, -0.114583336f, 0.46875f, 1.66666663f}));
}

static void halves_round_to_even(void **state) {
    (void)state;
    const double in[] = {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.6};
    double       out[7];
    Tensor       x = ARRAY(DT_F64, in, 7), y = ARRAY(DT_F64, out, 7);
    ref_unary(REF_ROUND, 0, 0, &x, &y);
    ASSERT_REALS(out, ((double[]){0, 2, 2, 0, -2, -2, 3}));
}

static void integers_wrap(void **state) {
    (void)state;
    const int8_t  small[] = {-128, -1, 5};
    const int64_t large[] = {INT64_MIN, -7, 7};
    int8_t        a[3];
    int64_t       b[3];
    Tensor        x = ARRAY(DT_I8, small, 3), y = ARRAY(DT_I8, a, 3);
    Tensor        u = ARRAY(DT_I64, large, 3), v = ARRAY(DT_I64, b, 3);
    ref_unary(REF_ABS, 0, 0, &x, &y);
    ASSERT_INTS(a, ((int8_t[]){-128, 1, 5}));
    ref_unary(REF_NEG, 0, 0, &u, &v);
    ASSERT_INTS(b, ((int64_t[]){INT64_MIN, 7, -7}));
    ref_unary(REF_SIGN, 0, 0, &u, &v);
    ASSERT_INTS(b, ((int64_t[]){-1, -1, 1}));
    ref_unary(REF_BIT_NOT, 0, 0, &x, &y);
    ASSERT_INTS(a, ((int8_t[]){127, 0, -6}));
}

static void not_gives_zero_or_one(void **state) {
    (void)state;
    const uint8_t in[] = {0, 1, 77};
    uint8_t       out[3];
    Tensor        x = ARRAY(DT_BOOL, in, 3), y = ARRAY(DT_BOOL, out, 3);
    ref_unary(REF_NOT, 0, 0, &x, &y);
    ASSERT_INTS(out, ((uint8_t[]){1, 0, 0}));
}

static void every_block_is_visited_in_every_type(void **state) {
    (void)state;
    enum { N = 1000 };
    static float    in[N], out[N];
    static uint16_t half[N], half_out[N];
    for (int i = 0; i < N; i++) {
        in[i] = (float)(i % 40) / 8;
        half[i] = half_from_f32(in[i]);
    }
    Tensor x = ARRAY(DT_F32, in, N), y = ARRAY(DT_F32, out, N);
    Tensor u = ARRAY(DT_F16, half, N), v = ARRAY(DT_F16, half_out, N);
    ref_unary(REF_SQRT, 0, 0, &x, &y);
    ref_unary(REF_SQRT, 0, 0, &u, &v);
    for (int i = 0; i < N; i++) {
        assert_true(out[i] == sqrtf(in[i]));
        assert_int_equal(half_out[i], half_from_f32(sqrtf(in[i])));
    }
}

static void infinities_are_found_by_sign(void **state) {
    (void)state;
    const float in[] = {NAN, INFINITY, -INFINITY, 1};
    uint8_t     out[4];
    Tensor      x = ARRAY(DT_F32, in, 4), y = ARRAY(DT_BOOL, out, 4);
    ref_is_inf(true, false, &x, &y);
    ASSERT_INTS(out, ((uint8_t[]){0, 0, 1, 0}));
    ref_is_inf(false, true, &x, &y);
    ASSERT_INTS(out, ((uint8_t[]){0, 1, 0, 0}));
    ref_is_nan(&x, &y);
    ASSERT_INTS(out, ((uint8_t[]){1, 0, 0, 0}));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_reals_follow_ieee),
        cmocka_unit_test(activations_match_their_definitions),
        cmocka_unit_test(halves_round_to_even),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(not_gives_zero_or_one),
        cmocka_unit_test(every_block_is_visited_in_every_type),
        cmocka_unit_test(infinities_are_found_by_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
