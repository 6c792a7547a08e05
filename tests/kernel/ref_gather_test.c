#include "tests/kernel/arrays.h"

#include <math.h>
#include <string.h>

#include "base/fp.h"
#include "kernel/ref/ref_gather.h"
#include "tests/runner.h"

static void indices_count_from_both_ends(void **state) {
    (void)state;
    float   in[] = {0, 1, 2, 3, 4, 5}, out[4];
    int32_t near[] = {-1, 0}, far[] = {0, 3}, low[] = {-4, 0};
    Tensor  x = ARRAY(DT_F32, in, 2, 3), y = ARRAY(DT_F32, out, 2, 2);
    Tensor  at = ARRAY(DT_I32, near, 2);
    assert_int_equal(ref_gather(&x, &at, 1, &y), ERR_OK);
    ASSERT_REALS(out, ((float[]){2, 0, 5, 3}));
    at.data = far;
    assert_int_equal(ref_gather(&x, &at, 1, &y), ERR_INVALID);
    assert_non_null(strstr(err_why(), "index 3"));
    at.data = low;
    assert_int_equal(ref_gather(&x, &at, 1, &y), ERR_INVALID);
}

static void elements_and_tuples(void **state) {
    (void)state;
    int8_t  in[] = {0, 1, 2, 3, 4, 5}, picked[2], rows[4];
    int64_t at[] = {2, -2}, tuple[] = {1, -1, 0, 0}, batch[] = {2, 0}, wild[] = {INT64_MIN, 0};
    Tensor  x = ARRAY(DT_I8, in, 2, 3), y = ARRAY(DT_I8, picked, 2, 1);
    Tensor  i = ARRAY(DT_I64, at, 2, 1);
    assert_int_equal(ref_gather_elements(&x, &i, 1, &y), ERR_OK);
    ASSERT_INTS(picked, ((int[]){2, 4}));
    Tensor t = ARRAY(DT_I64, tuple, 2, 2), flat = ARRAY(DT_I8, picked, 2);
    assert_int_equal(ref_gather_nd(&x, &t, 0, &flat), ERR_OK);
    ASSERT_INTS(picked, ((int[]){5, 0}));
    Tensor b = ARRAY(DT_I64, batch, 2, 1);
    assert_int_equal(ref_gather_nd(&x, &b, 1, &flat), ERR_OK);
    ASSERT_INTS(picked, ((int[]){2, 3}));
    Tensor w = ARRAY(DT_I64, wild, 2, 1), two = ARRAY(DT_I8, rows, 2, 2);
    assert_int_equal(ref_gather_elements(&x, &w, 1, &y), ERR_INVALID);
    assert_int_equal(ref_gather_nd(&x, &w, 0, &two), ERR_INVALID);
}

#define SCATTER(how, type, y, u)                                                                   \
    do {                                                                                           \
        int64_t at_[] = {0, 0};                                                                    \
        Tensor  y_ = ARRAY(type, y, 1), i_ = ARRAY(DT_I64, at_, 2), u_ = ARRAY(type, u, 2);        \
        assert_int_equal(ref_scatter_elements(how, &i_, &u_, 0, &y_), ERR_OK);                     \
    } while (0)

static void reductions_combine_in_order(void **state) {
    (void)state;
    int8_t byte[] = {100}, bytes[] = {100, 57};
    SCATTER(REF_SCATTER_ADD, DT_I8, byte, bytes);
    assert_int_equal(byte[0], 1);  // 257 wraps around
    int64_t wide[] = {INT64_MAX}, wides[] = {2, 3};
    SCATTER(REF_SCATTER_MUL, DT_I64, wide, wides);
    assert_true(wide[0] == -6);
    float real[] = {1}, reals[] = {NAN, 5};
    SCATTER(REF_SCATTER_MAX, DT_F32, real, reals);
    assert_true(isnan(real[0]));
    uint16_t half[] = {half_from_f32(2)}, halves[] = {half_from_f32(-1), half_from_f32(8)};
    SCATTER(REF_SCATTER_MIN, DT_F16, half, halves);
    assert_true(half_to_f32(half[0]) == -1);
    Str text[] = {{"a", 1}}, texts[] = {{"b", 1}, {"c", 1}};
    SCATTER(REF_SCATTER_SET, DT_STR, text, texts);
    assert_int_equal(text[0].at[0], 'c');
}

static void slices_scatter(void **state) {
    (void)state;
    float   y[] = {1, 1, 1, 1}, u[] = {2, 3, 4, 5};
    int64_t at[] = {1, 1}, out[] = {1, 2};
    Tensor  to = ARRAY(DT_F32, y, 2, 2), i = ARRAY(DT_I64, at, 2, 1), from = ARRAY(DT_F32, u, 2, 2);
    assert_int_equal(ref_scatter_nd(REF_SCATTER_ADD, &i, &from, &to), ERR_OK);
    ASSERT_REALS(y, ((float[]){1, 1, 7, 9}));
    i.data = out;
    assert_int_equal(ref_scatter_nd(REF_SCATTER_SET, &i, &from, &to), ERR_INVALID);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_count_from_both_ends),
        cmocka_unit_test(elements_and_tuples),
        cmocka_unit_test(reductions_combine_in_order),
        cmocka_unit_test(slices_scatter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
