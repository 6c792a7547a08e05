#include "tests/kernel/arrays.h"

#include <math.h>

#include "kernel/ref/ref_reduce.h"
#include "tests/runner.h"

static Arena scratch;

static int setup(void **state) {
    (void)state;
    return arena_init(&scratch, 1 << 20) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&scratch);
    return 0;
}

static void ties_and_strange_numbers_have_an_order(void **state) {
    (void)state;
    float   in[] = {1, NAN, -0.0f, INFINITY, 0, -INFINITY, 1, NAN}, out[8];
    int64_t at[8];
    Tensor  x = ARRAY(DT_F32, in, 8), y = ARRAY(DT_F32, out, 8), i = ARRAY(DT_I64, at, 8);
    assert_int_equal(ref_topk(&x, 0, true, &scratch, &y, &i), ERR_OK);
    ASSERT_INTS(at, ((int[]){1, 7, 3, 0, 6, 2, 4, 5}));
    assert_int_equal(ref_topk(&x, 0, false, &scratch, &y, &i), ERR_OK);
    ASSERT_INTS(at, ((int[]){5, 2, 4, 0, 6, 3, 1, 7}));
}

static void extremes_of_integers(void **state) {
    (void)state;
    int64_t  in[] = {0, INT64_MIN, INT64_MAX, -1}, out[2], at[2];
    uint64_t big[] = {1, UINT64_MAX, 0, INT64_MAX}, most[2];
    Tensor   x = ARRAY(DT_I64, in, 4), y = ARRAY(DT_I64, out, 2), i = ARRAY(DT_I64, at, 2);
    assert_int_equal(ref_topk(&x, 0, false, &scratch, &y, &i), ERR_OK);
    ASSERT_INTS(at, ((int[]){1, 3}));
    Tensor u = ARRAY(DT_U64, big, 4), v = ARRAY(DT_U64, most, 2);
    assert_int_equal(ref_topk(&u, 0, true, &scratch, &v, NULL), ERR_OK);
    assert_true(most[0] == UINT64_MAX && most[1] == INT64_MAX);
}

static void lines_run_along_any_axis(void **state) {
    (void)state;
    double  in[] = {1, 6, 3, 4, 5, 2}, out[2];
    int64_t at[2];
    Tensor  x = ARRAY(DT_F64, in, 3, 2), y = ARRAY(DT_F64, out, 1, 2), i = ARRAY(DT_I64, at, 1, 2);
    assert_int_equal(ref_topk(&x, 0, true, &scratch, &y, &i), ERR_OK);
    ASSERT_REALS(out, ((double[]){5, 6}));
    ASSERT_INTS(at, ((int[]){2, 0}));
}

static void a_full_arena_is_an_error(void **state) {
    (void)state;
    Arena   small;
    int64_t in[1024] = {0}, out[1];
    Tensor  x = ARRAY(DT_I64, in, 1024), y = ARRAY(DT_I64, out, 1);
    assert_int_equal(arena_init(&small, 4096), ERR_OK);
    assert_int_equal(ref_topk(&x, 0, true, &small, &y, NULL), ERR_LIMIT);
    arena_finish(&small);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ties_and_strange_numbers_have_an_order),
        cmocka_unit_test(extremes_of_integers),
        cmocka_unit_test(lines_run_along_any_axis),
        cmocka_unit_test(a_full_arena_is_an_error),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
