#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "tests/runner.h"

static void test_published_stream(void **state) {
    (void)state;
    Rng r = {1234567};  // first numbers of SplitMix64 for this seed, as published with it
    assert_true(rng_u64(&r) == UINT64_C(6457827717110365317));
    assert_true(rng_u64(&r) == UINT64_C(3203168211198807973));
    assert_true(rng_u64(&r) == UINT64_C(9817491932198370423));
}

static void test_below_is_even(void **state) {
    (void)state;
    Rng r = {7};
    int seen[6] = {0};
    for (int i = 0; i < 60000; i++) seen[rng_below(&r, 6)]++;
    for (int i = 0; i < 6; i++) assert_in_range(seen[i], 9600, 10400);
    assert_int_equal(rng_below(&r, 1), 0);
    uint64_t large = (UINT64_C(1) << 63) + 1;  // nearly half of all draws are rejected
    for (int i = 0; i < 1000; i++) assert_true(rng_below(&r, large) < large);
}

static void test_units_stay_below_one(void **state) {
    (void)state;
    Rng    r = {9};
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        float  f = rng_unit(&r);
        double d = rng_unit64(&r);
        assert_true(f >= 0 && f < 1 && d >= 0 && d < 1);
        sum += d;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.005);
}

static void test_moments(void **state) {
    (void)state;
    Rng    r = {11};
    double sum = 0, squares = 0, waits = 0;
    for (int i = 0; i < 100000; i++) {
        double x = rng_normal(&r), w = rng_exp(&r);
        assert_true(isfinite(x) && isfinite(w) && w >= 0);
        sum += x;
        squares += x * x;
        waits += w;
    }
    assert_true(fabs(sum / 100000) < 0.015);
    assert_true(fabs(squares / 100000 - 1) < 0.02);
    assert_true(fabs(waits / 100000 - 1) < 0.015);
}

static void test_streams_do_not_disturb_each_other(void **state) {
    (void)state;
    Rng a = {5}, b = {5};
    Rng child = rng_split(&a);
    for (int i = 0; i < 10; i++) (void)rng_u64(&child);
    (void)rng_split(&b);
    assert_true(rng_u64(&a) == rng_u64(&b));
    Rng parent = {5}, one = rng_fork(parent, 1), two = rng_fork(parent, 2);
    Rng again = rng_fork(parent, 1);
    assert_true(one.s == again.s && one.s != two.s && parent.s == 5);
    Rng zero = rng_fork((Rng){0}, 0);
    assert_true(zero.s != 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_stream),
        cmocka_unit_test(test_below_is_even),
        cmocka_unit_test(test_units_stay_below_one),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_streams_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
