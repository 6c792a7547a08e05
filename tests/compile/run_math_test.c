// Changes between operator sets, and operators that no suite covers: inference and kernel together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/tensor.h"
#include "tests/compile/call_run.h"
#include "tests/runner.h"

static void must_run(Call *c) {
    if (call_run(c) != ERR_OK) fail_msg("%s: %s", op_info(c->node.op)->name, err_why());
}

static void assert_reals(const Tensor *t, const double *want, size_t n) {
    assert_int_equal(tensor_count(t), n);
    for (size_t i = 0; i < n; i++) {
        double got = tensor_get_f64(t, (int64_t)i);
        if (!(fabs(got - want[i]) <= 1e-5 * fabs(want[i]) + 1e-6))
            fail_msg("element %zu is %g, not %g", i, got, want[i]);
    }
}
#define ASSERT_REALS(t, ...)                                                                       \
    assert_reals(t, (const double[]){__VA_ARGS__},                                                 \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static const float eight[] = {1, 2, 3, 4, 5, 6, 7, 8}, two[] = {10, 20};

static void old_broadcasts_lie_where_the_axis_says(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_Add, 6);
    call_in(&c, DT_F32, SHAPE(2, 2, 2), eight);
    call_in(&c, DT_F32, SHAPE(2), two);
    call_int(&c, "broadcast", 1);
    call_int(&c, "axis", 1);
    must_run(&c);
    ASSERT_REALS(&c.out[0], 11, 12, 23, 24, 15, 16, 27, 28);
    c.attrs[1].v.i = 0;
    must_run(&c);
    ASSERT_REALS(&c.out[0], 11, 12, 13, 14, 25, 26, 27, 28);
    c.node.n_attr = 1;
    must_run(&c);
    ASSERT_REALS(&c.out[0], 11, 22, 13, 24, 15, 26, 17, 28);
    call_finish(&c);
}

static void old_slopes_belong_to_channels(void **state) {
    (void)state;
    const float x[] = {-1, -1, -1, -1}, slope[] = {2, 3};
    Call        c;
    call_begin(&c, OP_PRelu, 6);
    call_in(&c, DT_F32, SHAPE(1, 2, 2), x);
    call_in(&c, DT_F32, SHAPE(2), slope);
    must_run(&c);
    ASSERT_REALS(&c.out[0], -2, -2, -3, -3);
    c.node.version = 9;
    must_run(&c);
    ASSERT_REALS(&c.out[0], -2, -3, -2, -3);
    call_finish(&c);
}

static void bounds_moved_from_attributes_to_inputs(void **state) {
    (void)state;
    const int8_t x[] = {-100, 0, 100}, low[] = {-5}, high[] = {7};
    const float  real[] = {-100, 0, 100};
    Call         c;
    call_begin(&c, OP_Clip, 13);
    call_in(&c, DT_I8, SHAPE(3), x);
    call_in(&c, DT_I8, SCALAR, low);
    call_in(&c, DT_I8, SCALAR, high);
    must_run(&c);
    ASSERT_REALS(&c.out[0], -5, 0, 7);
    call_finish(&c);
    call_begin(&c, OP_Clip, 6);
    call_in(&c, DT_F32, SHAPE(3), real);
    call_float(&c, "max", 50);
    must_run(&c);
    ASSERT_REALS(&c.out[0], -100, 0, 50);
    call_finish(&c);
}

static void softmax_once_flattened_what_follows(void **state) {
    (void)state;
    const float x[] = {0, 0, 0, 0, 0, 0, 0, 0};
    Call        c;
    call_begin(&c, OP_Softmax, 12);
    call_in(&c, DT_F32, SHAPE(2, 2, 2), x);
    must_run(&c);
    ASSERT_REALS(&c.out[0], .25, .25, .25, .25, .25, .25, .25, .25);
    c.node.version = 13;
    must_run(&c);
    ASSERT_REALS(&c.out[0], .5, .5, .5, .5, .5, .5, .5, .5);
    call_finish(&c);
}

static void batch_norm(Call *c, int32_t version, uint32_t n_out) {
    static const float scale[] = {2}, bias[] = {1}, mean[] = {4}, variance[] = {4};
    static const float x[] = {1, 3};
    call_begin(c, OP_BatchNormalization, version);
    call_in(c, DT_F32, SHAPE(2, 1), x);
    call_in(c, DT_F32, SHAPE(1), scale);
    call_in(c, DT_F32, SHAPE(1), bias);
    call_in(c, DT_F32, SHAPE(1), mean);
    call_in(c, DT_F32, SHAPE(1), variance);
    call_float(c, "epsilon", 0);
    call_float(c, "momentum", 0.75f);
    c->node.n_out = n_out;
}

static void statistics_are_given_or_taken_from_the_batch(void **state) {
    (void)state;
    Call c;
    batch_norm(&c, 9, 1);
    must_run(&c);
    ASSERT_REALS(&c.out[0], -2, 0);
    call_finish(&c);
    batch_norm(&c, 9, 3);
    must_run(&c);
    ASSERT_REALS(&c.out[0], -1, 3);
    ASSERT_REALS(&c.out[1], 3.5);
    ASSERT_REALS(&c.out[2], 3.25);
    call_finish(&c);
    batch_norm(&c, 15, 3);
    must_run(&c);
    ASSERT_REALS(&c.out[0], -2, 0);
    ASSERT_REALS(&c.out[1], 4);
    call_int(&c, "training_mode", 1);
    must_run(&c);
    ASSERT_REALS(&c.out[0], -1, 3);
    ASSERT_REALS(&c.out[1], 3.5);
    call_finish(&c);
}

static void group_scales_became_channel_scales(void **state) {
    (void)state;
    const float x[] = {1, 3, 1, 3, 5, 7, 5, 7}, scale[] = {1, 2, 3, 4}, bias[] = {0, 0, 0, 0};
    Call        c;
    call_begin(&c, OP_GroupNormalization, 18);
    call_in(&c, DT_F32, SHAPE(1, 4, 2), x);
    call_in(&c, DT_F32, SHAPE(2), scale);
    call_in(&c, DT_F32, SHAPE(2), bias);
    call_int(&c, "num_groups", 2);
    call_float(&c, "epsilon", 0);
    must_run(&c);
    ASSERT_REALS(&c.out[0], -1, 1, -1, 1, -2, 2, -2, 2);
    c.node.version = 21;
    c.tensors[1].dims[0] = c.tensors[2].dims[0] = 4;
    must_run(&c);
    ASSERT_REALS(&c.out[0], -1, 1, -2, 2, -3, 3, -4, 4);
    call_finish(&c);
}

static void skips_are_added_before_rows_are_normalised(void **state) {
    (void)state;
    const float x[] = {1, 2, 3, 4}, skip[] = {0, 1, 0, 1}, gamma[] = {2, 2}, beta[] = {1, 1};
    Call        c;
    call_begin(&c, OP_MsSkipLayerNorm, 1);
    call_in(&c, DT_F32, SHAPE(1, 2, 2), x);
    call_in(&c, DT_F32, SHAPE(1, 2, 2), skip);
    call_in(&c, DT_F32, SHAPE(2), gamma);
    call_in(&c, DT_F32, SHAPE(2), beta);
    c.node.n_out = 4;
    must_run(&c);
    ASSERT_REALS(&c.out[0], -1, 3, -1, 3);
    ASSERT_REALS(&c.out[3], 1, 3, 3, 5);
    call_finish(&c);
}

static void ratios_outside_the_range_are_refused(void **state) {
    (void)state;
    float         ratio[] = {1};
    const uint8_t yes[] = {1};
    Call          c;
    call_begin(&c, OP_Dropout, 13);
    call_in(&c, DT_F32, SHAPE(8), eight);
    call_in(&c, DT_F32, SCALAR, ratio);
    call_in(&c, DT_BOOL, SCALAR, yes);
    assert_int_equal(call_run(&c), ERR_INVALID);
    ratio[0] = NAN;
    assert_int_equal(call_run(&c), ERR_INVALID);
    ratio[0] = 0;
    must_run(&c);
    ASSERT_REALS(&c.out[0], 1, 2, 3, 4, 5, 6, 7, 8);
    call_finish(&c);
}

static void casts_to_text_outlive_the_call(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_Cast, 13);
    call_in(&c, DT_F32, SHAPE(2), two);
    call_int(&c, "to", DT_STR);
    must_run(&c);
    const Str *s = c.out[0].data;
    assert_int_equal(s[1].len, 4);
    assert_memory_equal(s[1].at, "20.0", 4);
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_broadcasts_lie_where_the_axis_says),
        cmocka_unit_test(old_slopes_belong_to_channels),
        cmocka_unit_test(bounds_moved_from_attributes_to_inputs),
        cmocka_unit_test(softmax_once_flattened_what_follows),
        cmocka_unit_test(statistics_are_given_or_taken_from_the_batch),
        cmocka_unit_test(group_scales_became_channel_scales),
        cmocka_unit_test(skips_are_added_before_rows_are_normalised),
        cmocka_unit_test(ratios_outside_the_range_are_refused),
        cmocka_unit_test(casts_to_text_outlive_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
