// Quantised and fused operators of com.microsoft, computed by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "tests/compile/call_run.h"
#include "tests/runner.h"

static const float   half = 0.5F, one = 1, two = 2;
static const uint8_t zero0 = 0, zero2 = 2, zero128 = 128;

static void scale(Call *c, const float *v) { call_in(c, DT_F32, SCALAR, v); }
static void zero(Call *c, const uint8_t *v) { call_in(c, DT_U8, SCALAR, v); }

static void bytes_are(const Tensor *t, const uint8_t *want, size_t n) {
    assert_int_equal(t->dtype, DT_U8);
    assert_int_equal(tensor_count(t), n);
    assert_memory_equal(t->data, want, n);
}

static void add_and_mul(void **state) {
    (void)state;
    static const uint8_t a[4] = {0, 2, 100, 255}, b[2] = {4, 200};
    for (int mul = 0; mul < 2; mul++) {
        Call c;
        call_begin(&c, mul ? OP_MsQLinearMul : OP_MsQLinearAdd, 1);
        call_in(&c, DT_U8, SHAPE(2, 2), a);
        scale(&c, &half);
        zero(&c, &zero2);
        call_in(&c, DT_U8, SHAPE(2), b);
        scale(&c, &one);
        call_skip(&c);
        scale(&c, &two);
        zero(&c, &zero0);
        assert_int_equal(call_run(&c), ERR_OK);
        // a is -1, 0, 49, 126.5; b is 4, 200
        if (mul)
            bytes_are(&c.out[0], (uint8_t[]){0, 0, 98, 255}, 4);
        else
            bytes_are(&c.out[0], (uint8_t[]){2, 100, 26, 163}, 4);
        call_finish(&c);
    }
}

static void one_operand(void **state) {
    (void)state;
    static const uint8_t x[4] = {126, 128, 130, 136};
    static const float   fine = 1.0F / 256;
    Call                 c;
    call_begin(&c, OP_MsQLinearSigmoid, 1);
    call_in(&c, DT_U8, SHAPE(4), x);
    scale(&c, &one);
    zero(&c, &zero128);
    scale(&c, &fine);
    zero(&c, &zero0);
    assert_int_equal(call_run(&c), ERR_OK);
    bytes_are(&c.out[0], (uint8_t[]){31, 128, 225, 255}, 4);
    call_finish(&c);
    call_begin(&c, OP_MsQLinearLeakyRelu, 1);
    call_float(&c, "alpha", 0.5F);
    call_in(&c, DT_U8, SHAPE(4), x);
    scale(&c, &one);
    zero(&c, &zero128);
    scale(&c, &one);
    zero(&c, &zero128);
    assert_int_equal(call_run(&c), ERR_OK);
    bytes_are(&c.out[0], (uint8_t[]){127, 128, 130, 136}, 4);
    call_finish(&c);
}

static void pools_and_softmax(void **state) {
    (void)state;
    static const uint8_t x[4] = {10, 20, 30, 40};
    static const OpId    ops[] = {OP_MsQLinearGlobalAveragePool, OP_MsQLinearAveragePool,
                                  OP_MsQLinearSoftmax};
    static const uint8_t want[] = {25, 20, 0};
    for (int i = 0; i < 3; i++) {
        Call c;
        call_begin(&c, ops[i], 1);
        call_in(&c, DT_U8, SHAPE(1, 1, 4), x);
        scale(&c, &one);
        zero(&c, &zero0);
        scale(&c, &one);
        zero(&c, &zero0);
        if (i == 1) call_ints(&c, "kernel_shape", SHAPE(3));
        assert_int_equal(call_run(&c), ERR_OK);
        assert_int_equal(((const uint8_t *)c.out[0].data)[0], want[i]);
        if (i == 2) assert_int_equal(((const uint8_t *)c.out[0].data)[3], 1);
        call_int(&c, "channels_last", 1);
        assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
        call_finish(&c);
    }
}

static void concat(void **state) {
    (void)state;
    static const uint8_t a[2] = {1, 2}, b[1] = {200};
    Call                 c;
    call_begin(&c, OP_MsQLinearConcat, 1);
    call_int(&c, "axis", 0);
    scale(&c, &one);
    zero(&c, &zero2);
    call_in(&c, DT_U8, SHAPE(2), a);
    scale(&c, &two);
    zero(&c, &zero0);
    call_in(&c, DT_U8, SHAPE(1), b);
    scale(&c, &half);
    zero(&c, &zero0);
    assert_int_equal(call_run(&c), ERR_OK);
    bytes_are(&c.out[0], (uint8_t[]){4, 6, 102}, 3);
    c.node.n_in = 7;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void missing_scale(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_MsQLinearAdd, 1);
    call_in(&c, DT_U8, SHAPE(2), NULL);
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void floats_are(const Tensor *t, const float *want, size_t n) {
    assert_int_equal(t->dtype, DT_F32);
    assert_int_equal(tensor_count(t), n);
    for (size_t i = 0; i < n; i++)
        assert_true(fabsf(((const float *)t->data)[i] - want[i]) < 1e-5F);
}

static void integer_products(void **state) {
    (void)state;
    static const uint8_t a[2] = {3, 5}, az = 1;
    static const int8_t  b[4] = {1, 2, 3, -4}, bz[2] = {0, 1};
    static const float   bs[2] = {1, 0.5F}, bias[2] = {100, 200};
    static const int32_t sum[2] = {1, -1};
    Call                 c;
    call_begin(&c, OP_MsMatMulIntegerToFloat, 1);
    call_in(&c, DT_U8, SHAPE(1, 2), a);
    call_in(&c, DT_I8, SHAPE(2, 2), b);
    scale(&c, &two);
    call_in(&c, DT_F32, SHAPE(2), bs);
    zero(&c, &az);
    call_in(&c, DT_I8, SHAPE(2), bz);
    call_in(&c, DT_F32, SHAPE(2), bias);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){128, 182}, 2);  // sums 14 and -18
    call_finish(&c);

    call_begin(&c, OP_MsQGemm, 1);
    call_in(&c, DT_U8, SHAPE(1, 2), a);
    scale(&c, &two);
    zero(&c, &az);
    call_in(&c, DT_I8, SHAPE(2, 2), b);
    call_in(&c, DT_F32, SHAPE(2), bs);
    call_in(&c, DT_I8, SHAPE(2), bz);
    call_in(&c, DT_I32, SHAPE(2), sum);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){30, -19}, 2);  // 15 * 2 * 1, -19 * 2 * 0.5
    scale(&c, &two);
    zero(&c, &zero128);
    assert_int_equal(call_run(&c), ERR_OK);
    bytes_are(&c.out[0], (uint8_t[]){143, 118}, 2);  // -9.5 to the even -10
    call_finish(&c);
}

static void dynamic_product(void **state) {
    (void)state;
    static const float  a[2] = {-1, 254}, bs = 0.5F;
    static const int8_t b[2] = {2, 4};
    Call                c;
    call_begin(&c, OP_MsDynamicQuantizeMatMul, 1);
    call_in(&c, DT_F32, SHAPE(1, 2), a);
    call_in(&c, DT_I8, SHAPE(2, 1), b);
    scale(&c, &bs);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){507}, 1);
    c.tensors[1] = tensor_of(DT_I8, SHAPE(2), (void *)(uintptr_t)b);
    c.tensors[2] = tensor_of(DT_F32, SHAPE(2), (void *)(uintptr_t)a);
    assert_int_equal(call_infer(&c), ERR_INVALID);  // a lone vector has no columns to scale
    call_finish(&c);
}

static void fused(void **state) {
    (void)state;
    static const float x[4] = {1, -2, 3, -4}, w = 2, z[4] = {0, 0, -10, 0};
    Call               c;
    call_begin(&c, OP_MsFusedConv, 1);
    call_in(&c, DT_F32, SHAPE(1, 1, 4), x);
    call_in(&c, DT_F32, SHAPE(1, 1, 1), &w);
    call_skip(&c);
    call_in(&c, DT_F32, SHAPE(1, 1, 4), z);
    call_str(&c, "activation", "LeakyRelu");
    call_floats(&c, "activation_params", 1, &half);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){2, -2, -2, -4}, 4);
    c.attrs[0].v.s.at = "Mystery";
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
    call_finish(&c);

    call_begin(&c, OP_MsFusedMatMul, 1);
    call_in(&c, DT_F32, SHAPE(2, 2), x);
    call_in(&c, DT_F32, SHAPE(2, 2), x);
    call_int(&c, "transA", 1);
    call_float(&c, "alpha", 0.5F);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){5, -7, -7, 10}, 4);
    call_finish(&c);

    call_begin(&c, OP_MsFusedGemm, 1);
    call_in(&c, DT_F32, SHAPE(1, 4), x);
    call_in(&c, DT_F32, SHAPE(4, 1), x);
    call_str(&c, "activation", "Clip");
    call_float(&c, "activation_beta", 6);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){6}, 1);
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_and_mul),       cmocka_unit_test(one_operand),
        cmocka_unit_test(pools_and_softmax), cmocka_unit_test(concat),
        cmocka_unit_test(missing_scale),     cmocka_unit_test(integer_products),
        cmocka_unit_test(dynamic_product),   cmocka_unit_test(fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
