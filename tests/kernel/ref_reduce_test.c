#include "tests/kernel/arrays.h"

#include <math.h>

#include "base/fp.h"
#include "kernel/ref/ref_reduce.h"
#include "tests/runner.h"

static const bool last[TENSOR_MAX_RANK] = {false, true};
static const bool first[TENSOR_MAX_RANK] = {true};

static void every_reduction_of_a_row(void **state) {
    (void)state;
    const float in[] = {1, -2, 3, -4, 5, -6};
    float       out[2];
    Tensor      x = ARRAY(DT_F32, in, 2, 3), y = ARRAY(DT_F32, out, 2);
    const struct {
        RefReduce f;
        float     want[2];
    } cases[] = {
        {REF_REDUCE_L1, {6, 15}},
        {REF_REDUCE_L2, {3.74165739f, 8.77496439f}},
        {REF_REDUCE_LOG_SUM, {0.693147181f, NAN}},
        {REF_REDUCE_LOG_SUM_EXP, {3.13284522f, 5.00014009f}},
        {REF_REDUCE_MAX, {3, 5}},
        {REF_REDUCE_MEAN, {2.0f / 3, -5.0f / 3}},
        {REF_REDUCE_MIN, {-2, -6}},
        {REF_REDUCE_PROD, {-6, 120}},
        {REF_REDUCE_SUM, {2, -5}},
        {REF_REDUCE_SUM_SQUARE, {14, 77}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ref_reduce(cases[i].f, last, &x, &y);
        ASSERT_REALS(out, cases[i].want);
    }
}

// Every choice of axes against sums indexed here.
static void every_choice_of_dimensions_agrees_with_plain_sums(void **state) {
    (void)state;
    enum { A = 2, B = 3, C = 4, D = 5 };
    static float in[A * B * C * D], out[A * B * C * D];
    for (int i = 0; i < A * B * C * D; i++) in[i] = (float)(i * 7 % 31);
    Tensor x = ARRAY(DT_F32, in, A, B, C, D);
    for (int choice = 0; choice < 16; choice++) {
        double  want[A * B * C * D] = {0};
        bool    along[TENSOR_MAX_RANK] = {false};
        int64_t kept[4], n = 0, count = 1;
        for (int i = 0; i < 4; i++) {
            along[i] = choice >> i & 1;
            if (!along[i]) kept[n++] = x.dims[i];
        }
        for (int64_t i = 0; i < n; i++) count *= kept[i];
        for (int64_t i = 0; i < A * B * C * D; i++) {
            int64_t index[4] = {i / (B * C * D), i / (C * D) % B, i / D % C, i % D}, to = 0;
            for (int d = 0; d < 4; d++)
                if (!along[d]) to = to * x.dims[d] + index[d];
            want[to] += (double)in[i];
        }
        Tensor y = tensor_of(DT_F32, (int32_t)n, kept, out);
        ref_reduce(REF_REDUCE_SUM, along, &x, &y);
        for (int64_t i = 0; i < count; i++) assert_true((double)out[i] == want[i]);
    }
}

static void empty_reductions_give_the_neutral_element(void **state) {
    (void)state;
    float   real[2];
    int8_t  small[2];
    uint8_t truth[2];
    Tensor  x = ARRAY(DT_F32, NULL, 2, 0), y = ARRAY(DT_F32, real, 2);
    Tensor  u = ARRAY(DT_I8, NULL, 2, 0), v = ARRAY(DT_I8, small, 2);
    Tensor  p = ARRAY(DT_BOOL, NULL, 2, 0), q = ARRAY(DT_BOOL, truth, 2);
    ref_reduce(REF_REDUCE_SUM, last, &x, &y);
    ASSERT_REALS(real, ((float[]){0, 0}));
    ref_reduce(REF_REDUCE_PROD, last, &x, &y);
    ASSERT_REALS(real, ((float[]){1, 1}));
    ref_reduce(REF_REDUCE_MAX, last, &x, &y);
    ASSERT_REALS(real, ((float[]){-INFINITY, -INFINITY}));
    ref_reduce(REF_REDUCE_MEAN, last, &x, &y);
    ASSERT_REALS(real, ((float[]){NAN, NAN}));
    ref_reduce(REF_REDUCE_LOG_SUM_EXP, last, &x, &y);
    ASSERT_REALS(real, ((float[]){-INFINITY, -INFINITY}));
    ref_reduce(REF_REDUCE_MAX, last, &u, &v);
    ASSERT_INTS(small, ((int8_t[]){-128, -128}));
    ref_reduce(REF_REDUCE_MEAN, last, &u, &v);
    ASSERT_INTS(small, ((int8_t[]){0, 0}));
    ref_reduce(REF_REDUCE_MAX, last, &p, &q);
    ASSERT_INTS(truth, ((uint8_t[]){0, 0}));
    ref_reduce(REF_REDUCE_MIN, last, &p, &q);
    ASSERT_INTS(truth, ((uint8_t[]){1, 1}));
}

static void integers_are_exact_and_wrap(void **state) {
    (void)state;
    const int64_t in[] = {(INT64_C(1) << 60) + 1, 2, INT64_MAX, 1};
    int64_t       out[2];
    Tensor        x = ARRAY(DT_I64, in, 2, 2), y = ARRAY(DT_I64, out, 2);
    ref_reduce(REF_REDUCE_SUM, last, &x, &y);
    ASSERT_INTS(out, ((int64_t[]){(INT64_C(1) << 60) + 3, INT64_MIN}));
    ref_reduce(REF_REDUCE_MAX, first, &x, &y);
    ASSERT_INTS(out, ((int64_t[]){INT64_MAX, 2}));
    const int64_t edge[] = {INT64_MIN};
    int64_t       one[1];
    Tensor        e = ARRAY(DT_I64, edge, 1), o = tensor_of(DT_I64, 0, NULL, one);
    ref_reduce(REF_REDUCE_L1, first, &e, &o);
    assert_true(one[0] == INT64_MIN);
}

static void sums_exceed_the_halves_they_are_made_of(void **state) {
    (void)state;
    enum { N = 5000 };
    static uint16_t in[N];
    uint16_t        out[1];
    for (int i = 0; i < N; i++) in[i] = half_from_f32(1);
    Tensor x = ARRAY(DT_F16, in, N), y = tensor_of(DT_F16, 0, NULL, out);
    ref_reduce(REF_REDUCE_SUM, first, &x, &y);
    assert_int_equal(out[0], half_from_f32(N));
}

static void exponents_do_not_overflow(void **state) {
    (void)state;
    const float in[] = {1000, 1000, -INFINITY, -INFINITY};
    float       out[2];
    Tensor      x = ARRAY(DT_F32, in, 2, 2), y = ARRAY(DT_F32, out, 2);
    ref_reduce(REF_REDUCE_LOG_SUM_EXP, last, &x, &y);
    ASSERT_REALS(out, ((float[]){1000.69315f, -INFINITY}));
}

static void equals_are_told_apart_by_place(void **state) {
    (void)state;
    const float in[] = {2, 5, 5, 1, NAN, 3, 7, 7, -7};
    int64_t     out[3];
    Tensor      x = ARRAY(DT_F32, in, 3, 3), y = ARRAY(DT_I64, out, 3);
    ref_arg(true, false, 1, &x, &y);
    ASSERT_INTS(out, ((int64_t[]){1, 1, 0}));
    ref_arg(true, true, 1, &x, &y);
    ASSERT_INTS(out, ((int64_t[]){2, 1, 1}));
    ref_arg(false, false, 0, &x, &y);
    ASSERT_INTS(out, ((int64_t[]){1, 1, 2}));
}

static void running_sums_in_all_four_ways(void **state) {
    (void)state;
    const int32_t in[] = {1, 2, 3, 4, 5, INT32_MAX};
    int32_t       out[6];
    Tensor        x = ARRAY(DT_I32, in, 2, 3), y = ARRAY(DT_I32, out, 2, 3);
    ref_cumsum(false, false, 1, &x, &y);
    ASSERT_INTS(out, ((int32_t[]){1, 3, 6, 4, 9, INT32_MIN + 8}));
    ref_cumsum(true, false, 1, &x, &y);
    ASSERT_INTS(out, ((int32_t[]){0, 1, 3, 0, 4, 9}));
    ref_cumsum(false, true, 0, &x, &y);
    ASSERT_INTS(out, ((int32_t[]){5, 7, INT32_MIN + 2, 4, 5, INT32_MAX}));
    ref_cumsum(true, true, 1, &x, &y);
    ASSERT_INTS(out, ((int32_t[]){5, 3, 0, INT32_MIN + 4, INT32_MAX, 0}));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reduction_of_a_row),
        cmocka_unit_test(every_choice_of_dimensions_agrees_with_plain_sums),
        cmocka_unit_test(empty_reductions_give_the_neutral_element),
        cmocka_unit_test(integers_are_exact_and_wrap),
        cmocka_unit_test(sums_exceed_the_halves_they_are_made_of),
        cmocka_unit_test(exponents_do_not_overflow),
        cmocka_unit_test(equals_are_told_apart_by_place),
        cmocka_unit_test(running_sums_in_all_four_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
