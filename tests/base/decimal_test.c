#include "base/decimal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/runner.h"

static int64_t read_as(const char *text, int64_t unit) {
    int64_t v = -1;
    assert_int_equal(decimal_read(text, unit, INT64_MAX, &v), DECIMAL_OK);
    return v;
}

static DecimalError fault(const char *text, int64_t unit, int64_t most) {
    int64_t      v = 77;
    DecimalError f = decimal_read(text, unit, most, &v);
    assert_true(f != DECIMAL_OK && v == 77);
    return f;
}

static void numbers(void **state) {
    (void)state;
    assert_int_equal(read_as("0", 1), 0);
    assert_int_equal(read_as("-0.0", 1000), 0);
    assert_int_equal(read_as("66.0", 1000000000), 66000000000);
    assert_int_equal(read_as("0.001", 1000000000), 1000000);
    assert_int_equal(read_as("+1.5", 1000), 1500);
    assert_int_equal(read_as(".5", 10), 5);
    assert_int_equal(read_as("7.", 10), 70);
    assert_int_equal(read_as("1e3", 1000), 1000000);
    assert_int_equal(read_as("2.5E-1", 1000), 250);
    assert_int_equal(read_as("1.9996", 1000), 2000);
    assert_int_equal(read_as("0.1234567894", 1000000000), 123456789);
    assert_int_equal(read_as("9223372036854775800", 1), INT64_C(9223372036854775800));
}

static void faults(void **state) {
    (void)state;
    const char *const not [] = {"",   ".",    "-",   "x",      "1x",  " 1",       "1 ", "1,5",
                                "1e", "0x10", "nan", "1e1.5e", "--1", "infinity", NULL};
    for (int i = 0; not [i] != NULL; i++)
        assert_int_equal(fault(not [i], 1, 100), DECIMAL_NOT_A_NUMBER);
    assert_int_equal(fault("-1", 1, 100), DECIMAL_NEGATIVE);
    assert_int_equal(fault("-1e999", 1, 100), DECIMAL_NEGATIVE);
    assert_int_equal(fault("101", 1, 100), DECIMAL_LARGE);
    assert_int_equal(fault("100.5", 1, 100), DECIMAL_LARGE);
    assert_int_equal(fault("99999999999999999999999", 1, INT64_MAX), DECIMAL_LARGE);
    assert_int_equal(fault("1e400", 1, INT64_MAX), DECIMAL_LARGE);
    assert_int_equal(fault("9223372036854775807", 1000, INT64_MAX), DECIMAL_LARGE);
}

static void there_and_back(void **state) {
    (void)state;
    const int64_t units[] = {1, 1000, 1024, 1000000000};
    Rng           r = {5};
    for (int i = 0; i < 20000; i++) {
        char    out[64] = "";
        int64_t unit = units[i % 4], v = (int64_t)(rng_u64(&r) >> (1 + rng_below(&r, 60)));
        FILE   *f = fmemopen(out, sizeof out, "w");
        decimal_put(f, v, unit);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(read_as(out, unit), v);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(faults),
        cmocka_unit_test(there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
