// Resize and Upsample: output sizes from scales, sizes and policies, by version, and invalid
// parameters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "tests/model/call.h"
#include "tests/runner.h"

// A Resize of [1, 3, 10, 20] by two scales of the last axes.
static Err by_scales(const float *scales, Tensor *out) {
    Call c;
    call_begin(&c, OP_Resize, 18);
    call_in(&c, DT_F32, SHAPE(1, 3, 10, 20), NULL);
    call_skip(&c);
    call_in(&c, DT_F32, SHAPE(2), scales);
    call_ints(&c, "axes", SHAPE(-2, -1));
    Err e = call_infer(&c);
    *out = c.out[0];
    call_finish(&c);
    return e;
}

static void scales(void **state) {
    (void)state;
    Tensor y;
    assert_int_equal(by_scales((float[]){0.55F, 2}, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(1, 3, 5, 40)));
    assert_int_equal(by_scales((float[]){1, 1e9F}, &y), ERR_OK);
    assert_true(y.dims[3] > INT64_C(19000000000));
    assert_int_equal(by_scales((float[]){1, 1e30F}, &y), ERR_LIMIT);
    static const float bad[] = {0, -1, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(by_scales((float[]){1, bad[i]}, &y), ERR_INVALID);
    assert_int_equal(by_scales(NULL, &y), ERR_OK);
    assert_int_equal(y.rank, RANK_UNKNOWN);
    assert_int_equal(y.dtype, DT_F32);
}

static Err by_sizes(const char *policy, const int64_t *sizes, Tensor *out) {
    Call c;
    call_begin(&c, OP_Resize, 18);
    call_in(&c, DT_F32, SHAPE(10, 20), NULL);
    call_skip(&c);
    call_skip(&c);
    call_in(&c, DT_I64, SHAPE(2), sizes);
    call_str(&c, "keep_aspect_ratio_policy", policy);
    Err e = call_infer(&c);
    *out = c.out[0];
    call_finish(&c);
    return e;
}

static void sizes(void **state) {
    (void)state;
    Tensor y;
    assert_int_equal(by_sizes("stretch", (int64_t[]){7, 8}, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(7, 8)));
    assert_int_equal(by_sizes("not_larger", (int64_t[]){7, 8}, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(4, 8)));
    assert_int_equal(by_sizes("not_smaller", (int64_t[]){7, 8}, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(7, 14)));
    assert_int_equal(by_sizes("stretch", (int64_t[]){-1, 8}, &y), ERR_INVALID);
    assert_int_equal(by_sizes("stretch", (int64_t[]){INT64_MAX, 8}, &y), ERR_OK);
    assert_int_equal(by_sizes("bent", (int64_t[]){7, 8}, &y), ERR_UNSUPPORTED);
}

static void both_or_neither(void **state) {
    (void)state;
    static const float   scale[2] = {2, 2};
    static const int64_t size[2] = {2, 2};
    Call                 c;
    call_begin(&c, OP_Resize, 13);
    call_in(&c, DT_F32, SHAPE(10, 20), NULL);
    call_in(&c, DT_F32, SHAPE(0), NULL);
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_in(&c, DT_F32, SHAPE(2), scale);
    assert_int_equal(call_infer(&c), ERR_OK);
    call_in(&c, DT_I64, SHAPE(2), size);
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[2].dims[0] = 0;
    assert_int_equal(call_infer(&c), ERR_OK);
    c.tensors[3].dims[0] = 1;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[3].dims[0] = 2;
    call_str(&c, "coordinate_transformation_mode", "tf_crop_and_resize");
    assert_int_equal(call_infer(&c), ERR_OK);  // the roi is not known yet
    c.tensors[1].data = (void *)(uintptr_t)scale;
    assert_int_equal(call_infer(&c), ERR_INVALID);  // and now known to be too short
    call_finish(&c);
}

static void axes(void **state) {
    (void)state;
    static const float   scale[2] = {2, 2};
    static const int64_t bad[][2] = {{0, 0}, {0, -2}, {0, 2}, {-3, 1}};
    for (size_t i = 0; i < 4; i++) {
        Call c;
        call_begin(&c, OP_Resize, 18);
        call_in(&c, DT_F32, SHAPE(10, 20), NULL);
        call_skip(&c);
        call_in(&c, DT_F32, SHAPE(2), scale);
        call_ints(&c, "axes", 2, bad[i]);
        assert_int_equal(call_infer(&c), ERR_INVALID);
        call_finish(&c);
    }
}

static void upsample_versions(void **state) {
    (void)state;
    static const float scale[4] = {1, 1, 2, 3};
    for (int version = 7; version <= 9; version += 2) {
        Call c;
        call_begin(&c, OP_Upsample, version);
        call_in(&c, DT_F32, SHAPE(1, 1, 4, 5), NULL);
        if (version < 9)
            call_floats(&c, "scales", 4, scale);
        else
            call_in(&c, DT_F32, SHAPE(4), scale);
        assert_int_equal(call_infer(&c), ERR_OK);
        assert_true(call_shape_is(&c.out[0], SHAPE(1, 1, 8, 15)));
        call_finish(&c);
    }
    Call c;
    call_begin(&c, OP_Upsample, 1);
    call_in(&c, DT_F32, SHAPE(1, 1, 4, 5), NULL);
    call_float(&c, "width_scale", 3);
    call_float(&c, "height_scale", 2);
    call_str(&c, "mode", "bilinear");
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(1, 1, 8, 15)));
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales),
        cmocka_unit_test(sizes),
        cmocka_unit_test(both_or_neither),
        cmocka_unit_test(axes),
        cmocka_unit_test(upsample_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
