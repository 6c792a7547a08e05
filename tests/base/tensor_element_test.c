#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/tensor.h"
#include "tests/runner.h"

static Tensor one(DType t, void *data) { return tensor_of(t, 0, NULL, data); }

static void integers_saturate(void **state) {
    (void)state;
    static const double big[] = {1e300, INFINITY, -1e300, -INFINITY, NAN};
    int64_t             wide;
    uint64_t            natural;
    int8_t              byte;
    Tensor              w = one(DT_I64, &wide), n = one(DT_U64, &natural), b = one(DT_I8, &byte);
    for (int i = 0; i < 5; i++) {
        tensor_set(&w, 0, big[i]);
        assert_true(wide == (i < 2 ? INT64_MAX : i < 4 ? INT64_MIN : 0));
        tensor_set(&n, 0, big[i]);
        assert_true(natural == (i < 2 ? UINT64_MAX : 0));
        tensor_set(&b, 0, big[i]);
        assert_int_equal(byte, i < 2 ? 127 : i < 4 ? -128 : 0);
    }
    tensor_set(&b, 0, -3.7);
    assert_int_equal(byte, -3);
    natural = UINT64_MAX;
    assert_true(tensor_get_i64(&n, 0) == INT64_MAX);
    double real = 1e300;
    Tensor r = one(DT_F64, &real);
    assert_true(tensor_get_i64(&r, 0) == INT64_MAX);
    real = NAN;
    assert_true(tensor_get_i64(&r, 0) == 0);
}

static void keys_sort_as_numbers(void **state) {
    (void)state;
    double   reals[] = {-INFINITY, -1e300, -1, -1e-300, 0, 1e-300, 1, INFINITY, NAN}, minus = -0.0;
    int64_t  ints[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    uint64_t naturals[] = {0, 1, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    Tensor   r = one(DT_F64, reals), i = one(DT_I64, ints), n = one(DT_U64, naturals);
    for (int k = 0; k < 8; k++) assert_true(tensor_sort_key(&r, k) < tensor_sort_key(&r, k + 1));
    for (int k = 0; k < 6; k++) assert_true(tensor_sort_key(&i, k) < tensor_sort_key(&i, k + 1));
    for (int k = 0; k < 4; k++) assert_true(tensor_sort_key(&n, k) < tensor_sort_key(&n, k + 1));
    Tensor m = one(DT_F64, &minus);
    assert_true(tensor_sort_key(&m, 0) == tensor_sort_key(&r, 4));
    assert_true(tensor_is_zero(&m, 0) && !tensor_is_zero(&r, 8) && !tensor_is_zero(&r, 3));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_saturate),
        cmocka_unit_test(keys_sort_as_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
