// Pools by hand: padding, dilation, indices, regions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/arena.h"
#include "kernel/ref/ref_pool.h"
#include "kernel/ref/ref_sample.h"
#include "tests/runner.h"

static float square[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static Tensor plane(float *data, int64_t h, int64_t w) {
    return tensor_of(DT_F32, 4, (int64_t[]){1, 1, h, w}, data);
}

static void pool(const RefPool *p, Tensor *x, float *y, int64_t *at) {
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    Tensor ty = plane(y, p->window.out[0], p->window.out[1]), tat = ty;
    tat.dtype = DT_I64;
    tat.data = at;
    assert_int_equal(ref_pool(p, x, &ty, at != NULL ? &tat : NULL, &a), ERR_OK);
    arena_finish(&a);
}

static void max_with_indices(void **state) {
    (void)state;
    RefPool p = {
        REF_POOL_MAX, {2, {3, 3}, {2, 2}, {2, 2}, {2, 2}, {1, 1}, {1, 0}, {0, 1}}, 0, 0, 0};
    Tensor  x = plane(square, 3, 3);
    float   y[4];
    int64_t at[4];
    pool(&p, &x, y, at);  // rows {-1, 0} and {1, 2}, columns {0, 1} and {2, 3}
    assert_true(y[0] == 2 && y[1] == 3 && y[2] == 8 && y[3] == 9);
    assert_true(at[0] == 1 && at[1] == 2 && at[2] == 7 && at[3] == 8);
    p.column_major = true;
    pool(&p, &x, y, at);
    assert_true(at[0] == 3 && at[1] == 6 && at[2] == 5 && at[3] == 8);
}

static void dilated(void **state) {
    (void)state;
    RefPool p = {
        REF_POOL_MAX, {2, {3, 3}, {1, 2}, {2, 2}, {1, 1}, {2, 1}, {0, 0}, {0, 0}}, 0, 0, 0};
    Tensor x = plane(square, 3, 3);
    float  y[2];
    pool(&p, &x, y, NULL);
    assert_true(y[0] == 8 && y[1] == 9);
    p.kind = REF_POOL_AVERAGE;
    pool(&p, &x, y, NULL);
    assert_true(y[0] == 4.5F && y[1] == 5.5F);
}

// Padding counts with count_pad; the ceil_mode overhang never does.
static void average_counts(void **state) {
    (void)state;
    RefPool p = {
        REF_POOL_AVERAGE, {2, {3, 3}, {1, 2}, {3, 3}, {1, 3}, {1, 1}, {0, 1}, {0, 1}}, 0, 0, 0};
    Tensor x = plane(square, 3, 3);
    float  y[2];
    pool(&p, &x, y, NULL);  // columns {-1, 0, 1} and {2, 3, 4}
    assert_true(y[0] == 4.5F && y[1] == 6);
    p.count_pad = true;
    pool(&p, &x, y, NULL);
    assert_true(y[0] == 3 && y[1] == 3);  // 27 / 9 and 18 / 6
}

static void norm(void **state) {
    (void)state;
    float   v[4] = {3, -4, 0, 0}, y[1];
    Tensor  x = plane(v, 1, 4);
    RefPool p = {REF_POOL_LP, {2, {1, 4}, {1, 1}, {1, 4}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, 2, 0, 0};
    pool(&p, &x, y, NULL);
    assert_true(y[0] == 5);
    p.p = 1;
    pool(&p, &x, y, NULL);
    assert_true(y[0] == 7);
}

static void not_a_number_wins(void **state) {
    (void)state;
    float   v[3] = {1, NAN, 2}, y[1];
    int64_t at[1];
    Tensor  x = plane(v, 1, 3);
    RefPool p = {
        REF_POOL_MAX, {2, {1, 3}, {1, 1}, {1, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, 0, 0, 0};
    pool(&p, &x, y, at);
    assert_true(isnan(y[0]) && at[0] == 1);
}

static void unpool(void **state) {
    (void)state;
    float   v[2] = {5, 6}, y[12] = {0};
    int64_t at[2] = {3, 5}, dims[2] = {3, 2};
    Tensor  x = plane(v, 1, 2), tat = x, ty = plane(y, 4, 3);
    tat.dtype = DT_I64;
    tat.data = at;
    assert_int_equal(ref_unpool(&x, &tat, dims, &ty), ERR_OK);
    assert_true(y[4] == 5 && y[7] == 6);
    static const int64_t bad[] = {-1, 6, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        at[1] = bad[i];
        assert_int_equal(ref_unpool(&x, &tat, dims, &ty), ERR_INVALID);
    }
}

static void regions(void **state) {
    (void)state;
    float  roi[5] = {0, 0, 0, 1, 2}, y[2];
    Tensor x = plane(square, 3, 3), ty = plane(y, 2, 1);
    Tensor rois = tensor_of(DT_F32, 2, (int64_t[]){1, 5}, roi);
    assert_int_equal(ref_roi_max(1, &x, &rois, &ty), ERR_OK);
    assert_true(y[0] == 5 && y[1] == 8);
    roi[3] = (float)1e30, roi[4] = -INFINITY;
    assert_int_equal(ref_roi_max(1, &x, &rois, &ty), ERR_OK);
    static const float bad[] = {-1, 1, NAN, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        roi[0] = bad[i];
        assert_int_equal(ref_roi_max(1, &x, &rois, &ty), ERR_INVALID);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_with_indices),  cmocka_unit_test(dilated),
        cmocka_unit_test(average_counts),    cmocka_unit_test(norm),
        cmocka_unit_test(not_a_number_wins), cmocka_unit_test(unpool),
        cmocka_unit_test(regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
