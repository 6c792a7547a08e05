// Shape inference of convolutions, pools and products, and invalid inputs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/model/call.h"
#include "tests/runner.h"

static void conv_groups(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_Conv, 11);
    call_in(&c, DT_F32, SHAPE(2, 6, 5, 5), NULL);
    call_in(&c, DT_F32, SHAPE(9, 2, 3, 1), NULL);
    call_in(&c, DT_F32, SHAPE(9), NULL);
    call_int(&c, "group", 3);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(2, 9, 3, 5)));
    static const int64_t bad[] = {0, -3, 2, 4, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        c.attrs[0].v.i = bad[i];
        assert_int_equal(call_infer(&c), ERR_INVALID);
    }
    call_finish(&c);
}

static void conv_rejects(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_Conv, 11);
    call_in(&c, DT_F32, SHAPE(2, 6, 5, 5), NULL);
    call_in(&c, DT_F32, SHAPE(9, 6, 3), NULL);
    assert_int_equal(call_infer(&c), ERR_INVALID);  // ranks differ
    c.tensors[1] = tensor_of(DT_F64, SHAPE(9, 6, 3, 3), NULL);
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);  // types differ
    c.tensors[1] = tensor_of(DT_F32, SHAPE(9, 6, 3, 3), NULL);
    assert_int_equal(call_infer(&c), ERR_OK);
    call_in(&c, DT_F32, SHAPE(8), NULL);
    assert_int_equal(call_infer(&c), ERR_INVALID);  // bias too short
    c.tensors[0].dtype = DT_STR;
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
    call_finish(&c);
}

static void transpose_channels_overflow(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_ConvTranspose, 11);
    call_in(&c, DT_F32, SHAPE(1, 4, 5), NULL);
    call_in(&c, DT_F32, SHAPE(4, INT64_MAX, 3), NULL);
    call_int(&c, "group", 4);
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void matmul_rules(void **state) {
    (void)state;
    static const struct {
        int32_t ra, rb;
        int64_t a[4], b[4];
        int32_t ry;  // -1: rejected
        int64_t y[4];
    } rows[] = {
        {2, 2, {3, 4}, {4, 5}, 2, {3, 5}},     {1, 2, {4}, {4, 5}, 1, {5}},
        {2, 1, {3, 4}, {4}, 1, {3}},           {1, 1, {4}, {4}, 0, {0}},
        {1, 3, {4}, {2, 4, 5}, 2, {2, 5}},     {4, 3, {7, 1, 3, 4}, {2, 4, 5}, 4, {7, 2, 3, 5}},
        {2, 2, {0, 4}, {4, 5}, 2, {0, 5}},     {2, 2, {3, 4}, {3, 5}, -1, {0}},
        {3, 3, {2, 3, 4}, {3, 4, 5}, -1, {0}}, {0, 2, {0}, {4, 5}, -1, {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Call c;
        call_begin(&c, OP_MatMul, 13);
        call_in(&c, DT_F32, rows[i].ra, rows[i].a, NULL);
        call_in(&c, DT_F32, rows[i].rb, rows[i].b, NULL);
        assert_int_equal(call_infer(&c), rows[i].ry < 0 ? ERR_INVALID : ERR_OK);
        if (rows[i].ry >= 0) assert_true(call_shape_is(&c.out[0], rows[i].ry, rows[i].y));
        call_finish(&c);
    }
}

static void gemm_bias(void **state) {
    (void)state;
    for (int broadcast = 0; broadcast < 2; broadcast++) {
        Call c;
        call_begin(&c, OP_Gemm, 6);
        call_in(&c, DT_F32, SHAPE(4, 3), NULL);
        call_in(&c, DT_F32, SHAPE(5, 4), NULL);
        call_in(&c, DT_F32, SHAPE(5), NULL);
        call_int(&c, "transA", 1);
        call_int(&c, "transB", 1);
        call_int(&c, "broadcast", broadcast);
        assert_int_equal(call_infer(&c), broadcast ? ERR_OK : ERR_INVALID);
        c.node.version = 11;
        assert_int_equal(call_infer(&c), ERR_OK);
        assert_true(call_shape_is(&c.out[0], SHAPE(3, 5)));
        c.tensors[2] = tensor_of(DT_F32, SHAPE(2, 3, 5), NULL);
        assert_int_equal(call_infer(&c), ERR_INVALID);
        call_finish(&c);
    }
}

static void zero_points(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_MatMulInteger, 10);
    call_in(&c, DT_U8, SHAPE(2, 3, 4), NULL);
    call_in(&c, DT_I8, SHAPE(4, 5), NULL);
    call_in(&c, DT_U8, SHAPE(3), NULL);
    call_in(&c, DT_I8, SHAPE(5), NULL);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_int_equal(c.out[0].dtype, DT_I32);
    c.tensors[2] = tensor_of(DT_U8, SHAPE(2, 3, 1), NULL);
    assert_int_equal(call_infer(&c), ERR_OK);
    c.tensors[2] = tensor_of(DT_U8, SHAPE(4), NULL);
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[2] = tensor_of(DT_I8, SCALAR, NULL);
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void unpool_shape(void **state) {
    (void)state;
    static const int64_t want[4] = {1, 1, 5, 5};
    Call                 c;
    call_begin(&c, OP_MaxUnpool, 11);
    call_in(&c, DT_F32, SHAPE(1, 1, 2, 2), NULL);
    call_in(&c, DT_I64, SHAPE(1, 1, 2, 2), NULL);
    call_in(&c, DT_I64, SHAPE(4), NULL);
    call_ints(&c, "kernel_shape", SHAPE(2, 2));
    call_ints(&c, "strides", SHAPE(2, 2));
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_int_equal(c.out[0].rank, RANK_UNKNOWN);
    c.tensors[2].data = (void *)(uintptr_t)want;
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(1, 1, 5, 5)));
    c.tensors[2].dims[0] = 3;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_groups),  cmocka_unit_test(conv_rejects),
        cmocka_unit_test(matmul_rules), cmocka_unit_test(transpose_channels_overflow),
        cmocka_unit_test(gemm_bias),    cmocka_unit_test(zero_points),
        cmocka_unit_test(unpool_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
