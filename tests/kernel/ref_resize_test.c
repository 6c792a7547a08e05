// Resampling by hand: coordinates, rounding, antialiasing, regions.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/arena.h"
#include "kernel/ref/ref_resize.h"
#include "tests/runner.h"

static Err resize(RefResize *p, Tensor *x, Tensor *y) {
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 22), ERR_OK);
    for (int32_t i = 0; i < x->rank; i++) {
        if (p->axis[i].scale == 0) p->axis[i].scale = (float)y->dims[i] / (float)x->dims[i];
        if (p->axis[i].length == 0) p->axis[i].length = (double)y->dims[i];
    }
    Err e = ref_resize(p, x, y, &a);
    arena_finish(&a);
    return e;
}

static void near(const float *have, const double *want, int n) {
    for (int i = 0; i < n; i++) assert_true(fabs((double)have[i] - want[i]) < 1e-5);
}

static float ramp[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static Tensor line(int64_t n, float *v) { return tensor_of(DT_F32, 1, &n, v); }

static void coordinates(void **state) {
    (void)state;
    // From 4 to 6, output 3, one row a mode.
    static const double want[] = {
        [REF_RESIZE_HALF_PIXEL] = 3.5 / 1.5 - 0.5,
        [REF_RESIZE_HALF_PIXEL_SYMMETRIC] = 3.5 / 1.5 - 0.5,
        [REF_RESIZE_PYTORCH_HALF_PIXEL] = 3.5 / 1.5 - 0.5,
        [REF_RESIZE_ALIGN_CORNERS] = 3 * 3 / 5.0,
        [REF_RESIZE_ASYMMETRIC] = 2,
        [REF_RESIZE_TF_HALF_PIXEL_FOR_NN] = 3.5 / 1.5,
        [REF_RESIZE_TF_CROP_AND_RESIZE] = (0.25 + 3 * 0.5 / 5) * 3,
    };
    RefResizeAxis a = {1.5F, 6, {0.25, 0.75}};
    for (int i = 0; i < 7; i++) {
        RefResize p = {.coordinate = (RefResizeCoordinate)i};
        assert_true(fabs(ref_resize_coordinate(&p, &a, 3, 4, 6) - want[i]) < 1e-6);
    }
    RefResize     p = {.coordinate = REF_RESIZE_HALF_PIXEL_SYMMETRIC};
    RefResizeAxis cut = {0.6F, 2.4, {0, 1}};  // 4 to 2.4 became 2: the middle stays the middle
    assert_true(fabs(ref_resize_coordinate(&p, &cut, 0, 4, 2) +
                     ref_resize_coordinate(&p, &cut, 1, 4, 2) - 3) < 1e-6);
}

static void nearest_rounding(void **state) {
    (void)state;
    // Halves at 0.5, 2.5 (outputs 0, 1 of 4 to 2).
    static const float want[][2] = {{1, 3}, {2, 4}, {1, 3}, {2, 4}, {2, 4}};
    for (int i = 0; i < 5; i++) {
        float     y[2];
        Tensor    tx = line(4, ramp), ty = line(2, y);
        RefResize p = {.nearest = (RefResizeNearest)i};
        assert_int_equal(resize(&p, &tx, &ty), ERR_OK);
        assert_true(y[0] == want[i][0] && y[1] == want[i][1]);
    }
}

static void linear_both_ways(void **state) {
    (void)state;
    float     y[8], z[4];
    Tensor    tx = tensor_of(DT_F32, 2, (int64_t[]){2, 2}, ramp);
    Tensor    ty = tensor_of(DT_F32, 2, (int64_t[]){2, 4}, y);
    Tensor    tz = tensor_of(DT_F32, 2, (int64_t[]){4, 1}, z);
    RefResize p = {.mode = REF_RESIZE_LINEAR}, q = p;
    assert_int_equal(resize(&p, &tx, &ty), ERR_OK);
    near(y, (double[]){1, 1.25, 1.75, 2, 3, 3.25, 3.75, 4}, 8);
    assert_int_equal(resize(&q, &tx, &tz), ERR_OK);
    near(z, (double[]){1.5, 2, 3, 3.5}, 4);
}

static void cubic_outside(void **state) {
    (void)state;
    float     y[4];
    Tensor    tx = line(2, ramp), ty = line(4, y);
    RefResize p = {.mode = REF_RESIZE_CUBIC, .cubic_a = -0.5, .exclude_outside = true};
    assert_int_equal(resize(&p, &tx, &ty), ERR_OK);
    // At -0.25: neighbours 0 and 1 at distances 0.25 and 1.25, renormalised.
    double w0 = ref_resize_cubic(-0.5, 0.25), w1 = ref_resize_cubic(-0.5, 1.25);
    double edge = (w0 + 2 * w1) / (w0 + w1);
    assert_true(fabs((double)y[0] - edge) < 1e-6 && fabs((double)(y[0] + y[3]) - 3) < 1e-6);
    assert_true(ref_resize_cubic(-0.75, 0) == 1 && ref_resize_cubic(-0.75, 2.5) == 0);
}

static void antialias(void **state) {
    (void)state;
    for (int cubic = 0; cubic < 2; cubic++) {
        float     y[4];
        Tensor    tx = tensor_of(DT_F32, 2, (int64_t[]){4, 4}, ramp);
        Tensor    ty = tensor_of(DT_F32, 2, (int64_t[]){2, 2}, y);
        RefResize p = {.mode = cubic ? REF_RESIZE_CUBIC : REF_RESIZE_LINEAR, .antialias = true};
        p.cubic_a = -0.75;
        p.axis[0] = p.axis[1] = (RefResizeAxis){0.6F, 2.4, {0, 1}};
        assert_int_equal(resize(&p, &tx, &ty), ERR_OK);
        // The vectors ONNX publishes for these two.
        if (cubic)
            near(y, (double[]){2.5180721, 4.2858863, 9.589329, 11.357142}, 4);
        else
            near(y, (double[]){2.875, 4.5, 9.375, 11}, 4);
    }
}

static void region(void **state) {
    (void)state;
    float     y[3], huge = 1e30F;
    Tensor    tx = line(4, ramp), ty = line(3, y);
    RefResize p = {.mode = REF_RESIZE_LINEAR, .coordinate = REF_RESIZE_TF_CROP_AND_RESIZE};
    p.extrapolation = 7;
    p.axis[0] = (RefResizeAxis){0.75F, 3, {0.5, 1.5}};
    for (int nearest = 0; nearest < 2; nearest++) {
        p.mode = nearest ? REF_RESIZE_NEAREST : REF_RESIZE_LINEAR;
        assert_int_equal(resize(&p, &tx, &ty), ERR_OK);  // 1.5, 3, 4.5
        near(y, (double[]){nearest ? 2 : 2.5, 4, 7}, 3);
        p.axis[0].roi[0] = NAN;
        assert_int_equal(resize(&p, &tx, &ty), ERR_OK);
        near(y, (double[]){7, 7, 7}, 3);
        p.axis[0].roi[0] = (double)-huge;
        assert_int_equal(resize(&p, &tx, &ty), ERR_OK);
        p.axis[0].roi[0] = 0.5;
    }
}

static void any_type_nearest(void **state) {
    (void)state;
    Str       x[2] = {{"a", 1}, {"bc", 2}}, y[4];
    Tensor    tx = tensor_of(DT_STR, 1, (int64_t[]){2}, x);
    Tensor    ty = tensor_of(DT_STR, 1, (int64_t[]){4}, y);
    RefResize p = {.nearest = REF_RESIZE_FLOOR, .coordinate = REF_RESIZE_ASYMMETRIC};
    assert_int_equal(resize(&p, &tx, &ty), ERR_OK);
    assert_true(y[1].at == x[0].at && y[2].at == x[1].at && y[3].len == 2);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinates),      cmocka_unit_test(nearest_rounding),
        cmocka_unit_test(linear_both_ways), cmocka_unit_test(cubic_outside),
        cmocka_unit_test(antialias),        cmocka_unit_test(region),
        cmocka_unit_test(any_type_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
