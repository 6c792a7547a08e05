#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/tensor.h"
#include "tests/runner.h"

static void test_types(void **state) {
    (void)state;
    assert_string_equal(dtype_name(DT_F32), "float32");
    assert_string_equal(dtype_name(DT_NONE), "unknown");
    assert_string_equal(dtype_name((DType)-1), "unknown");
    assert_string_equal(dtype_name((DType)20), "unknown");
    assert_int_equal(dtype_size(DT_C128), 16);
    assert_int_equal(dtype_size((DType)99), 0);
    assert_null(dtype_numpy(DT_BF16));
    for (int t = 1; t < DT_COUNT; t++) {
        const char *descr = dtype_numpy((DType)t);
        if (descr != NULL) assert_int_equal(dtype_from_numpy(descr, strlen(descr)), t);
    }
    assert_int_equal(dtype_from_numpy("<f4x", 4), DT_NONE);
    assert_int_equal(dtype_from_numpy("", 0), DT_NONE);
    assert_true(dtype_is_float(DT_BF16) && !dtype_is_float(DT_I8));
    assert_true(dtype_is_int(DT_U64) && !dtype_is_int(DT_BOOL) && !dtype_is_number(DT_STR));
}

static void test_measure(void **state) {
    (void)state;
    size_t bytes = 77;
    Tensor t = tensor_of(DT_F64, 3, (int64_t[]){2, 3, 4}, NULL);
    assert_int_equal(tensor_measure(&t, &bytes), ERR_OK);
    assert_int_equal(bytes, 192);
    assert_int_equal(tensor_count(&t), 24);
    t = tensor_of(DT_I8, 0, NULL, NULL);
    assert_int_equal(tensor_measure(&t, &bytes), ERR_OK);
    assert_int_equal(bytes, 1);
    t = tensor_of(DT_I8, 3, (int64_t[]){INT64_C(1) << 40, 0, 5}, NULL);
    assert_int_equal(tensor_measure(&t, &bytes), ERR_OK);
    assert_int_equal(bytes, 0);
    bytes = 77;
    static const struct {
        int64_t dims[3];
        Err     want;
    } bad[] = {
        {{INT64_MAX, INT64_MAX, INT64_MAX}, ERR_LIMIT},
        {{INT64_MAX, 0, INT64_MAX}, ERR_LIMIT},
        {{INT64_C(1) << 32, INT64_C(1) << 32, 1}, ERR_LIMIT},
        {{-1, 2, 3}, ERR_INVALID},
        {{2, 3, INT64_MIN}, ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        t = tensor_of(DT_F32, 3, bad[i].dims, NULL);
        assert_int_equal(tensor_measure(&t, &bytes), bad[i].want);
    }
    t = (Tensor){.dtype = DT_F32, .rank = RANK_UNKNOWN};
    assert_int_equal(tensor_measure(&t, &bytes), ERR_INVALID);
    t = (Tensor){.dtype = DT_F32, .rank = TENSOR_MAX_RANK + 1};
    assert_int_equal(tensor_measure(&t, &bytes), ERR_INVALID);
    t = (Tensor){.dtype = DT_NONE, .rank = 0};
    assert_int_equal(tensor_measure(&t, &bytes), ERR_INVALID);
    assert_int_equal(bytes, 77);
}

static void test_known(void **state) {
    (void)state;
    Tensor t = tensor_of(DT_F32, 2, (int64_t[]){2, DIM_UNKNOWN}, NULL);
    assert_false(tensor_known(&t));
    t.dims[1] = 0;
    assert_true(tensor_known(&t));
    t.rank = RANK_UNKNOWN;
    assert_false(tensor_known(&t));
}

static void test_equal(void **state) {
    (void)state;
    float  x[2] = {1, 2}, y[2] = {1, 3};
    Tensor a = tensor_of(DT_F32, 1, (int64_t[]){2}, x), b = a;
    assert_true(tensor_equal(&a, &b));
    b.data = y;
    assert_false(tensor_equal(&a, &b));
    b.data = NULL;
    assert_false(tensor_equal(&a, &b));
    b = tensor_of(DT_F32, 2, (int64_t[]){1, 2}, x);
    assert_false(tensor_equal(&a, &b));
    Str    s[2] = {{"ab", 2}, {"", 0}}, r[2] = {{"abc", 2}, {"zz", 0}};
    Tensor c = tensor_of(DT_STR, 1, (int64_t[]){2}, s), d = tensor_of(DT_STR, 1, (int64_t[]){2}, r);
    assert_true(tensor_equal(&c, &d));
    r[1].len = 1;
    assert_false(tensor_equal(&c, &d));
    Tensor inner[2] = {a, c}, other[2] = {a, c};
    Tensor p = tensor_of(DT_SEQ, 1, (int64_t[]){2}, inner);
    Tensor q = tensor_of(DT_SEQ, 1, (int64_t[]){2}, other);
    assert_true(tensor_equal(&p, &q));
    other[1] = d;
    assert_false(tensor_equal(&p, &q));
}

static void test_shape_text(void **state) {
    (void)state;
    char   text[32], tiny[4];
    Tensor t = tensor_of(DT_F32, 4, (int64_t[]){1, 3, DIM_UNKNOWN, 224}, NULL);
    tensor_shape_text(&t, text, sizeof text);
    assert_string_equal(text, "1x3x?x224");
    tensor_shape_text(&t, tiny, sizeof tiny);
    assert_string_equal(tiny, "1x3");
    t.rank = 0;
    tensor_shape_text(&t, text, sizeof text);
    assert_string_equal(text, "scalar");
    t.rank = RANK_UNKNOWN;
    tensor_shape_text(&t, text, sizeof text);
    assert_string_equal(text, "?");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),      cmocka_unit_test(test_measure),
        cmocka_unit_test(test_known),      cmocka_unit_test(test_equal),
        cmocka_unit_test(test_shape_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
