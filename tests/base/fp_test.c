#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/fp.h"
#include "tests/runner.h"

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

// Slow reference: the value by arithmetic instead of bits.
static double value_of(uint16_t h, int exp_bits, int frac_bits) {
    int    bias = (1 << (exp_bits - 1)) - 1, exp = (h >> frac_bits) & ((1 << exp_bits) - 1);
    int    frac = h & ((1 << frac_bits) - 1);
    double sign = (h & 0x8000) != 0 ? -1 : 1;
    if (exp == (1 << exp_bits) - 1) return frac != 0 ? NAN : sign * INFINITY;
    if (exp == 0) return sign * ldexp(frac, 1 - bias - frac_bits);
    return sign * ldexp((1 << frac_bits) + frac, exp - bias - frac_bits);
}

static bool same(double a, double b) {
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void test_every_half(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = half_to_f32((uint16_t)h);
        assert_true(same(f, value_of((uint16_t)h, 5, 10)));
        uint16_t back = half_from_f32(f);
        assert_true(isnan(f) ? (back & 0x7FFF) > 0x7C00 && ((back ^ h) & 0x8000) == 0 : back == h);
    }
}

static void test_every_bfloat(void **state) {
    (void)state;
    for (uint32_t b = 0; b < 0x10000; b++) {
        float f = bf16_to_f32((uint16_t)b);
        assert_true(same(f, value_of((uint16_t)b, 8, 7)));
        uint16_t back = bf16_from_f32(f);
        assert_true(isnan(f) ? (back & 0x7FFF) > 0x7F80 && ((back ^ b) & 0x8000) == 0 : back == b);
    }
}

// Ties round to even; other values to the nearest.
static void test_ties(float (*widen)(uint16_t), uint16_t (*narrow)(float), uint16_t largest) {
    for (uint16_t h = 0; h < largest; h++) {
        float    low = widen(h), high = widen((uint16_t)(h + 1)), middle = low + (high - low) / 2;
        uint16_t even = h % 2 == 0 ? h : (uint16_t)(h + 1);
        assert_int_equal(narrow(middle), even);
        assert_int_equal(narrow(-middle), even | 0x8000);
        assert_int_equal(narrow(nextafterf(middle, 0)), h);
        assert_int_equal(narrow(nextafterf(middle, INFINITY)), h + 1);
    }
}

static void test_half_rounding(void **state) {
    (void)state;
    test_ties(half_to_f32, half_from_f32, 0x7BFF);
    assert_int_equal(half_from_f32(65519.996f), 0x7BFF);
    assert_int_equal(half_from_f32(65520.0f), 0x7C00);
    assert_int_equal(half_from_f32(-1e30f), 0xFC00);
    assert_int_equal(half_from_f32(float_of(1)), 0);
    assert_int_equal(half_from_f32(0x1p-25f), 0);
    assert_int_equal(half_from_f32(0x1.000002p-25f), 1);
}

static void test_bfloat_rounding(void **state) {
    (void)state;
    test_ties(bf16_to_f32, bf16_from_f32, 0x7F7F);
    assert_int_equal(bf16_from_f32(float_of(0x7F7FFFFF)), 0x7F80);
}

static void test_no_nan_becomes_infinity(void **state) {
    (void)state;
    for (uint32_t bit = 0; bit < 23; bit++) {
        float f = float_of(0x7F800000u | 1u << bit);
        assert_true(isnan(half_to_f32(half_from_f32(f))));
        assert_true(isnan(bf16_to_f32(bf16_from_f32(f))));
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_half),
        cmocka_unit_test(test_every_bfloat),
        cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_bfloat_rounding),
        cmocka_unit_test(test_no_nan_becomes_infinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
