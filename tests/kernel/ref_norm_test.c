#include "tests/kernel/arrays.h"

#include <math.h>

#include "base/fp.h"
#include "kernel/ref/ref_norm.h"
#include "tests/runner.h"

static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 9};

static void every_kind_over_rows(void **state) {
    (void)state;
    float  out[8];
    Tensor x = ARRAY(DT_F32, numbers, 2, 4), y = ARRAY(DT_F32, out, 2, 4);
    const struct {
        RefNormKind kind;
        float       want[8];
    } cases[] = {
        {REF_NORM_VARIANCE,
         {-1.133893419f, -0.377964473f, 0.377964473f, 1.133893419f, -1.067489992f, -0.457495711f,
          0.15249857f, 1.372487133f}},
        {REF_NORM_DEVIATION,
         {-0.927050983f, -0.309016994f, 0.309016994f, 0.927050983f, -0.88427608f, -0.378975463f,
          0.126325154f, 1.136926389f}},
        {REF_NORM_RMS,
         {0.353553391f, 0.707106781f, 1.060660172f, 1.414213562f, 0.719815751f, 0.863778901f,
          1.007742051f, 1.295668351f}},
        {REF_NORM_L1, {0.1f, 0.2f, 0.3f, 0.4f, 5 / 27.0f, 6 / 27.0f, 7 / 27.0f, 9 / 27.0f}},
        {REF_NORM_L2,
         {0.182574186f, 0.365148372f, 0.547722558f, 0.730296743f, 0.361787303f, 0.434144763f,
          0.506502224f, 0.651217145f}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        RefNorm p = {.kind = cases[i].kind, .along = {false, true}, .epsilon = 0.5};
        ref_norm(&p, &x, &y);
        ASSERT_REALS(out, cases[i].want);
    }
}

static void statistics_can_be_kept(void **state) {
    (void)state;
    float   out[8], mean[2], inverse[2];
    Tensor  x = ARRAY(DT_F32, numbers, 2, 4), y = ARRAY(DT_F32, out, 2, 4);
    Tensor  m = ARRAY(DT_F32, mean, 2, 1), s = ARRAY(DT_F32, inverse, 2, 1);
    RefNorm p = {.kind = REF_NORM_VARIANCE,
                 .along = {false, true},
                 .epsilon = 0.5,
                 .mean = &m,
                 .inverse = &s};
    ref_norm(&p, &x, &y);
    ASSERT_REALS(mean, ((float[]){2.5f, 6.75f}));
    ASSERT_REALS(inverse, ((float[]){0.755928946f, 0.609994281f}));
}

static void sets_may_be_scattered(void **state) {
    (void)state;
    float   out[8];
    double  mean[2], variance[2];
    Tensor  x = ARRAY(DT_F32, numbers, 2, 2, 2), y = ARRAY(DT_F32, out, 2, 2, 2);
    RefNorm p = {.kind = REF_NORM_DEVIATION, .along = {true, false, true}, .epsilon = 1e-9};
    ref_moments(p.along, &x, mean, variance);
    ASSERT_REALS(mean, ((double[]){3.5, 5.75}));
    ASSERT_REALS(variance, ((double[]){4.25, 5.6875}));
    ref_norm(&p, &x, &y);
    ASSERT_REALS(out, ((float[]){-1.212678125f, -0.727606875f, -1.15311332f, -0.733799385f,
                                 0.727606875f, 1.212678125f, 0.524142418f, 1.362770287f}));
}

static void zeros_have_no_direction(void **state) {
    (void)state;
    const float in[3] = {0};
    float       out[3];
    Tensor      x = ARRAY(DT_F32, in, 3), y = ARRAY(DT_F32, out, 3);
    RefNorm     p = {.kind = REF_NORM_L2, .along = {true}};
    ref_norm(&p, &x, &y);
    ASSERT_REALS(out, in);
}

// Far from zero, mean(x^2) - mean(x)^2 would lose all digits; mean((x - mean)^2) does not.
static void a_large_mean_costs_no_digits(void **state) {
    (void)state;
    const float in[] = {1e6f, 1e6f + 1};
    float       out[2];
    Tensor      x = ARRAY(DT_F32, in, 2), y = ARRAY(DT_F32, out, 2);
    RefNorm     p = {.kind = REF_NORM_VARIANCE, .along = {true}};
    ref_norm(&p, &x, &y);
    ASSERT_REALS(out, ((float[]){-1, 1}));
}

static void channels_are_scaled_and_shifted(void **state) {
    (void)state;
    enum { REST = 300 };
    static uint16_t in[2 * 2 * REST], out[2 * 2 * REST];
    const double    mul[] = {2, -1}, add[] = {1, 0.5};
    for (int i = 0; i < 4 * REST; i++) in[i] = half_from_f32((float)(i % 50));
    Tensor x = ARRAY(DT_F16, in, 2, 2, REST), y = ARRAY(DT_F16, out, 2, 2, REST);
    ref_affine(mul, add, &x, &y);
    for (int i = 0; i < 4 * REST; i++) {
        float v = (float)(i % 50), want = i / REST % 2 == 0 ? 2 * v + 1 : 0.5f - v;
        assert_int_equal(out[i], half_from_f32(want));
    }
}

static void responses_look_at_neighbour_channels(void **state) {
    (void)state;
    float  out[8];
    Tensor x = ARRAY(DT_F32, numbers, 1, 4, 2), y = ARRAY(DT_F32, out, 1, 4, 2);
    RefLrn p = {.alpha = 0.3, .beta = 0.75, .bias = 1, .size = 3};
    ref_lrn(&p, &x, &y);
    ASSERT_REALS(out, ((float[]){0.594603558f, 0.877382675f, 0.970983543f, 0.971408814f,
                                 0.938875039f, 0.815923088f, 1.418693489f, 1.337795463f}));
    p.size = 2;
    ref_lrn(&p, &x, &y);
    ASSERT_REALS(out, ((float[]){0.502973372f, 0.707106781f, 0.772901016f, 0.782885027f,
                                 0.770692223f, 0.671263936f, 1.425060109f, 1.303311402f}));
    p.size = INT64_MAX;
    ref_lrn(&p, &x, &y);
    ASSERT_REALS(out, numbers);
}

static void empty_tensors_are_left_alone(void **state) {
    (void)state;
    Tensor  x = ARRAY(DT_F32, NULL, (int64_t)1 << 40, 1, 0), y = x;
    RefNorm p = {.kind = REF_NORM_VARIANCE, .along = {false, false, true}};
    ref_norm(&p, &x, &y);
    ref_affine((double[]){1}, (double[]){0}, &x, &y);
    assert_null(y.data);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_over_rows),
        cmocka_unit_test(statistics_can_be_kept),
        cmocka_unit_test(sets_may_be_scattered),
        cmocka_unit_test(zeros_have_no_direction),
        cmocka_unit_test(a_large_mean_costs_no_digits),
        cmocka_unit_test(channels_are_scaled_and_shifted),
        cmocka_unit_test(responses_look_at_neighbour_channels),
        cmocka_unit_test(empty_tensors_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
