#include "tests/kernel/arrays.h"

#include <math.h>

#include "base/fp.h"
#include "kernel/ref/ref_norm.h"
#include "tests/runner.h"

static const bool second[TENSOR_MAX_RANK] = {false, true};
static const bool from_second[TENSOR_MAX_RANK] = {false, true, true};

static void shares_sum_to_one_along_a_middle_dimension(void **state) {
    (void)state;
    const float in[] = {0, 1, 2, 0, 0, 1000, 0, 1000};
    float       out[8];
    double      row[2];
    Tensor      x = ARRAY(DT_F32, in, 2, 2, 2), y = ARRAY(DT_F32, out, 2, 2, 2);
    ref_softmax(REF_SOFTMAX, second, &x, &y, row);
    ASSERT_REALS(out, ((float[]){0.119202922f, 0.731058579f, 0.880797078f, 0.268941421f, 0.5f, 0.5f,
                                 0.5f, 0.5f}));
    ref_softmax(REF_LOG_SOFTMAX, second, &x, &y, row);
    ASSERT_REALS(out, ((float[]){-2.12692801f, -0.313261688f, -0.126928011f, -1.31326169f,
                                 -0.693147181f, -0.693147181f, -0.693147181f, -0.693147181f}));
    ref_softmax(REF_HARDMAX, second, &x, &y, row);
    ASSERT_REALS(out, ((float[]){0, 1, 1, 0, 1, 1, 0, 0}));
}

static void several_dimensions_make_one_row(void **state) {
    (void)state;
    const double in[] = {0, 0, 0, 0, 1, 1, 1, 1 + log(2)};
    double       out[8], row[4];
    Tensor       x = ARRAY(DT_F64, in, 2, 2, 2), y = ARRAY(DT_F64, out, 2, 2, 2);
    ref_softmax(REF_SOFTMAX, from_second, &x, &y, row);
    ASSERT_REALS(out, ((double[]){0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.4}));
}

static void long_rows_cross_blocks_in_half_precision(void **state) {
    (void)state;
    enum { N = 1024 };
    static uint16_t in[N], out[N];
    static double   row[N];
    Tensor          x = ARRAY(DT_F16, in, 1, N), y = ARRAY(DT_F16, out, 1, N);
    ref_softmax(REF_SOFTMAX, second, &x, &y, row);
    for (int i = 0; i < N; i++) assert_int_equal(out[i], half_from_f32(0x1p-10f));
}

static void empty_rows_are_left_alone(void **state) {
    (void)state;
    Tensor x = ARRAY(DT_F32, NULL, 3, 0), y = x;
    ref_softmax(REF_SOFTMAX, second, &x, &y, NULL);
    assert_null(y.data);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_sum_to_one_along_a_middle_dimension),
        cmocka_unit_test(several_dimensions_make_one_row),
        cmocka_unit_test(long_rows_cross_blocks_in_half_precision),
        cmocka_unit_test(empty_rows_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
