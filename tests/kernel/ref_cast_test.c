#include "tests/kernel/arrays.h"

#include <math.h>
#include <string.h>

#include "base/fp.h"
#include "kernel/ref/ref_cast.h"
#include "tests/runner.h"

static void numbers_become_other_numbers(void **state) {
    (void)state;
    const float in[] = {1.9f, -1.9f, 3e9f, NAN, 0};
    int32_t     whole[5];
    uint8_t     truth[5];
    uint16_t    half[5];
    Tensor      x = ARRAY(DT_F32, in, 5), w = ARRAY(DT_I32, whole, 5), t = ARRAY(DT_BOOL, truth, 5);
    Tensor      h = ARRAY(DT_F16, half, 5);
    ref_cast(&x, &w);
    ASSERT_INTS(whole, ((int32_t[]){1, -1, INT32_MAX, 0, 0}));
    ref_cast(&x, &t);
    ASSERT_INTS(truth, ((uint8_t[]){1, 1, 1, 1, 0}));
    ref_cast(&x, &h);
    assert_int_equal(half[0], half_from_f32(1.9f));
    assert_int_equal(half[2], 0x7C00);
}

static void check_text(const Tensor *x, const char *want) {
    char   text[REF_CAST_TEXT];
    size_t n = ref_cast_print(x, 0, text);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(text, want, n);
}

static void check_float(float v, const char *want) {
    Tensor x = tensor_of(DT_F32, 0, NULL, &v);
    check_text(&x, want);
}

static void floats_print_shortest(void **state) {
    (void)state;
    check_float(0.039187793f, "0.039187793");
    check_float(0.1f, "0.1");
    check_float(-100, "-100.0");
    check_float(123456790000.0f, "123456790000.0");
    check_float(0, "0.0");
    check_float(-0.0f, "-0.0");
    check_float(1e-5f, "1e-05");
    check_float(0.0001f, "0.0001");
    check_float(1e16f, "1e+16");
    check_float(3.40282347e38f, "3.4028235e+38");
    check_float(NAN, "NaN");
    check_float(-INFINITY, "-INF");
    double third = 1.0 / 3;
    Tensor x = tensor_of(DT_F64, 0, NULL, &third);
    check_text(&x, "0.3333333333333333");
}

static void integers_print_exactly(void **state) {
    (void)state;
    int64_t  low = INT64_MIN;
    uint64_t high = UINT64_MAX;
    uint8_t  yes = 1;
    Tensor   a = tensor_of(DT_I64, 0, NULL, &low), b = tensor_of(DT_U64, 0, NULL, &high);
    Tensor   c = tensor_of(DT_BOOL, 0, NULL, &yes);
    check_text(&a, "-9223372036854775808");
    check_text(&b, "18446744073709551615");
    check_text(&c, "True");
}

static Err read_as(DType t, const char *text, void *out) {
    Tensor y = tensor_of(t, 0, NULL, out);
    return ref_cast_read((Str){text, strlen(text)}, &y, 0);
}

static void texts_become_numbers(void **state) {
    (void)state;
    float   f = 0;
    int64_t i = 0;
    uint8_t b = 9;
    assert_int_equal(read_as(DT_F32, "-INF", &f), ERR_OK);
    assert_true(isinf(f) && f < 0);
    assert_int_equal(read_as(DT_F32, "0.47892547", &f), ERR_OK);
    assert_true(f == 0.47892547f);
    assert_int_equal(read_as(DT_I64, "9223372036854775807", &i), ERR_OK);
    assert_true(i == INT64_MAX);
    assert_int_equal(read_as(DT_I64, "1e3", &i), ERR_OK);
    assert_true(i == 1000);
    assert_int_equal(read_as(DT_U8, "-5", &b), ERR_OK);
    assert_int_equal(b, 0);
    assert_int_equal(read_as(DT_BOOL, "true", &b), ERR_OK);
    assert_int_equal(b, 1);
}

static void other_texts_are_refused(void **state) {
    (void)state;
    float f = 0;
    char  zeros[300];
    memset(zeros, '0', sizeof zeros - 1);
    zeros[sizeof zeros - 1] = '\0';
    assert_int_equal(read_as(DT_F32, "", &f), ERR_INVALID);
    assert_int_equal(read_as(DT_F32, "1.5x", &f), ERR_INVALID);
    assert_int_equal(read_as(DT_F32, zeros, &f), ERR_INVALID);
    Tensor y = tensor_of(DT_F32, 0, NULL, &f);
    assert_int_equal(ref_cast_read((Str){"1\0002", 3}, &y, 0), ERR_INVALID);
    assert_int_equal(ref_cast_read((Str){NULL, 0}, &y, 0), ERR_INVALID);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_become_other_numbers), cmocka_unit_test(floats_print_shortest),
        cmocka_unit_test(integers_print_exactly),       cmocka_unit_test(texts_become_numbers),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
