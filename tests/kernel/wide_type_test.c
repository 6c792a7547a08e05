#include "tests/kernel/arrays.h"

#include <math.h>

#include "base/fp.h"
#include "base/rng.h"
#include "kernel/wide_type.h"
#include "tests/runner.h"

static void floats_saturate_into_integers(void **state) {
    (void)state;
    const double in[] = {1e30, -1e30, NAN, 127.9, -128.9, -0.9, INFINITY};
    int8_t       small[7];
    uint8_t      natural[7];
    int64_t      large[7];
    Tensor       x = ARRAY(DT_F64, in, 7), s = ARRAY(DT_I8, small, 7), n = ARRAY(DT_U8, natural, 7),
           l = ARRAY(DT_I64, large, 7);
    WideBlock b;
    wide_load(WIDE_F64, &x, 0, 1, 7, &b);
    wide_store(WIDE_F64, &b, &s, 0, 1, 7);
    wide_store(WIDE_F64, &b, &n, 0, 1, 7);
    wide_store(WIDE_F64, &b, &l, 0, 1, 7);
    ASSERT_INTS(small, ((int8_t[]){127, -128, 0, 127, -128, 0, 127}));
    ASSERT_INTS(natural, ((uint8_t[]){255, 0, 0, 127, 0, 0, 255}));
    ASSERT_INTS(large, ((int64_t[]){INT64_MAX, INT64_MIN, 0, 127, -128, 0, INT64_MAX}));
}

static void integers_wrap_into_narrower_ones(void **state) {
    (void)state;
    const int64_t in[] = {300, -1, INT64_MIN, 128};
    int8_t        small[4];
    uint16_t      natural[4];
    uint8_t       truth[4];
    Tensor x = ARRAY(DT_I64, in, 4), s = ARRAY(DT_I8, small, 4), n = ARRAY(DT_U16, natural, 4),
           t = ARRAY(DT_BOOL, truth, 4);
    WideBlock b;
    wide_load(WIDE_I64, &x, 0, 1, 4, &b);
    wide_store(WIDE_I64, &b, &s, 0, 1, 4);
    wide_store(WIDE_I64, &b, &n, 0, 1, 4);
    wide_store(WIDE_I64, &b, &t, 0, 1, 4);
    ASSERT_INTS(small, ((int8_t[]){44, -1, 0, -128}));
    ASSERT_INTS(natural, ((uint16_t[]){300, 65535, 0, 128}));
    ASSERT_INTS(truth, ((uint8_t[]){1, 1, 1, 1}));
}

static void strides_skip_and_repeat(void **state) {
    (void)state;
    const float in[] = {0, 1, 2, 3, 4, 5};
    Tensor      x = ARRAY(DT_F32, in, 6);
    WideBlock   b;
    wide_load(WIDE_F64, &x, 1, 2, 3, &b);
    assert_true(b.f64[0] == 1 && b.f64[1] == 3 && b.f64[2] == 5);
    wide_load(WIDE_F64, &x, 4, 0, 3, &b);
    assert_true(b.f64[0] == 4 && b.f64[1] == 4 && b.f64[2] == 4);
}

static void any_byte_but_zero_is_true(void **state) {
    (void)state;
    const uint8_t in[] = {0, 1, 2, 255};
    Tensor        x = ARRAY(DT_BOOL, in, 4);
    WideBlock     b;
    wide_load(WIDE_U64, &x, 0, 1, 4, &b);
    assert_true(b.u64[0] == 0 && b.u64[1] == 1 && b.u64[2] == 1 && b.u64[3] == 1);
}

static double distance(double v, uint16_t half) { return fabs(v - (double)half_to_f32(half)); }

// A double just above the midpoint of two f16 values: rounding to float first would make it a tie.
static void doubles_round_once_to_sixteen_bits(void **state) {
    (void)state;
    double    just_above = 1 + 0x1p-11 + 0x1p-40, just_below = 1 + 3 * 0x1p-11 - 0x1p-40;
    uint16_t  half[2];
    Tensor    y = ARRAY(DT_F16, half, 2);
    WideBlock b = {.f64 = {just_above, just_below}};
    wide_store(WIDE_F64, &b, &y, 0, 1, 2);
    assert_int_equal(half[0], 0x3C01);
    assert_int_equal(half[1], 0x3C01);
    Rng rng = {7};
    for (int i = 0; i < 1000; i++) {
        const double v = b.f64[0] = rng_unit64(&rng) * 100 - 50;
        wide_store(WIDE_F64, &b, &y, 0, 1, 1);
        assert_true(distance(v, half[0]) <= distance(v, (uint16_t)(half[0] + 1)));
        assert_true(distance(v, half[0]) <= distance(v, (uint16_t)(half[0] - 1)));
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_saturate_into_integers),
        cmocka_unit_test(integers_wrap_into_narrower_ones),
        cmocka_unit_test(strides_skip_and_repeat),
        cmocka_unit_test(any_byte_but_zero_is_true),
        cmocka_unit_test(doubles_round_once_to_sixteen_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
