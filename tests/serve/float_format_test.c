// Numbers written in few digits read back as the same bits.
#include "serve/tensor/float_format.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/runner.h"

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static const char *text_f32(float v, char *out) {
    size_t n = float_format_f32(v, out);
    assert_true(n < FLOAT_FORMAT_ROOM);
    out[n] = '\0';
    return out;
}

static const char *text_f64(double v, char *out) {
    size_t n = float_format_f64(v, out);
    assert_true(n < FLOAT_FORMAT_ROOM);
    out[n] = '\0';
    return out;
}

static int count_digits(const char *text) {
    char digits[64];
    int  n = 0, first = 0;
    for (; *text != '\0' && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9') digits[n++] = *text;
    while (first < n && digits[first] == '0') first++;
    while (n > first && digits[n - 1] == '0') n--;
    return n - first;
}

// The obvious way: more digits until it reads back.
static int fewest(float v) {
    char text[64];
    for (int digits = 1; digits < 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*e", digits - 1, (double)v);
        if (strtof(text, NULL) == v) return count_digits(text);
    }
    return 9;
}

static void check_f32(uint32_t bits) {
    char  text[FLOAT_FORMAT_ROOM + 1];
    float v = float_of(bits);
    if (!isfinite(v)) return;
    char *end = NULL;
    assert_int_equal(bits_of(strtof(text_f32(v, text), &end)), bits);
    assert_int_equal(*end, '\0');
}

static void test_some_texts(void **state) {
    (void)state;
    static const struct {
        float       v;
        const char *text;
    } rows[] = {{0.0F, "0.0"},
                {-0.0F, "-0.0"},
                {1.0F, "1.0"},
                {0.1F, "0.1"},
                {-2.5F, "-2.5"},
                {100.0F, "100.0"},
                {1e-5F, "0.00001"},
                {1e-6F, "1e-6"},
                {16777216.0F, "16777216.0"},
                {1e16F, "1e16"},
                {1e15F, "1000000000000000.0"},
                {3.4028235e38F, "3.4028235e38"},
                {1e-45F, "1e-45"},
                {1.1754944e-38F, "1.1754944e-38"},
                {0.3F, "0.3"},
                {123456.79F, "123456.79"},
                {9.999999e9F, "9999999000.0"}};
    char text[FLOAT_FORMAT_ROOM + 1];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(text_f32(rows[i].v, text), rows[i].text);
    assert_string_equal(text_f64(0.1, text), "0.1");
    assert_string_equal(text_f64(-0.0, text), "-0.0");
    assert_string_equal(text_f64(5e-324, text), "5e-324");
    assert_string_equal(text_f64(1.7976931348623157e308, text), "1.7976931348623157e308");
    assert_string_equal(text_f64(0.1 + 0.2, text), "0.30000000000000004");
}

static void test_floats_read_back(void **state) {
    (void)state;
    Rng rng = {1};
    for (int i = 0; i < 1500000; i++) check_f32((uint32_t)rng_u64(&rng));
    for (uint32_t e = 0; e < 255; e++)  // around every power of two
        for (uint32_t k = 0; k < 16; k++) check_f32((e << 23) + k - (e > 0 ? 8 : 0));
    for (uint32_t bits = 0; bits < 20000; bits++) check_f32(bits);
}

static void test_floats_are_short(void **state) {
    (void)state;
    Rng  rng = {2};
    char text[FLOAT_FORMAT_ROOM + 1];
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)rng_u64(&rng) & 0x7FFFFFFF;
        float    v = i % 2 == 0 ? float_of(bits) : (float)rng_below(&rng, 100000) / 1000;
        if (!isfinite(v) || v == 0 || (bits_of(v) & 0x7FFFFF) == 0) continue;
        assert_int_equal(count_digits(text_f32(v, text)), fewest(v));
    }
}

static void test_doubles_read_back(void **state) {
    (void)state;
    Rng  rng = {3};
    char text[FLOAT_FORMAT_ROOM + 1];
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = rng_u64(&rng);
        double   v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        double back = strtod(text_f64(v, text), NULL);
        assert_memory_equal(&back, &v, sizeof v);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_some_texts),
        cmocka_unit_test(test_floats_read_back),
        cmocka_unit_test(test_floats_are_short),
        cmocka_unit_test(test_doubles_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
