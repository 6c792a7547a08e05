// QuantizeLinear and DequantizeLinear: types, axes, blocks, and invalid scales.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/model/call.h"
#include "tests/runner.h"

static Err quantize(int32_t rank, const int64_t *scale, int64_t axis, int64_t block) {
    Call c;
    call_begin(&c, OP_QuantizeLinear, 21);
    call_in(&c, DT_F32, SHAPE(2, 6, 5), NULL);
    call_in(&c, DT_F32, rank, scale, NULL);
    call_in(&c, DT_I8, rank, scale, NULL);
    call_int(&c, "axis", axis);
    call_int(&c, "block_size", block);
    Err e = call_infer(&c);
    if (e == ERR_OK) {
        assert_int_equal(c.out[0].dtype, DT_I8);
        assert_true(call_shape_is(&c.out[0], SHAPE(2, 6, 5)));
    }
    call_finish(&c);
    return e;
}

static void layouts(void **state) {
    (void)state;
    assert_int_equal(quantize(SCALAR, 7, 0), ERR_OK);  // with one scale the axis is ignored
    assert_int_equal(quantize(SHAPE(1), 1, 0), ERR_OK);
    assert_int_equal(quantize(SHAPE(6), 1, 0), ERR_OK);
    assert_int_equal(quantize(SHAPE(6), -2, 0), ERR_OK);
    assert_int_equal(quantize(SHAPE(2, 2, 5), 1, 4), ERR_OK);
    assert_int_equal(quantize(SHAPE(6), 0, 0), ERR_INVALID);
    assert_int_equal(quantize(SHAPE(6), 3, 0), ERR_INVALID);
    assert_int_equal(quantize(SHAPE(2, 2, 5), 1, 0), ERR_INVALID);
    assert_int_equal(quantize(SHAPE(2, 2, 5), 1, 2), ERR_INVALID);
    assert_int_equal(quantize(SHAPE(2, 2, 5), 1, -4), ERR_INVALID);
    assert_int_equal(quantize(SHAPE(2, 1, 5), 1, INT64_MAX), ERR_OK);
    assert_int_equal(quantize(SCALAR, 1, INT64_MIN), ERR_INVALID);
}

static void types(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_QuantizeLinear, 21);
    call_in(&c, DT_F16, SHAPE(3), NULL);
    call_in(&c, DT_F16, SCALAR, NULL);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_int_equal(c.out[0].dtype, DT_U8);
    call_int(&c, "output_dtype", DT_I16);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_int_equal(c.out[0].dtype, DT_I16);
    c.attrs[0].v.i = 1 << 20;
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
    c.attrs[0].v.i = DT_F32;
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
    call_finish(&c);
    call_begin(&c, OP_DequantizeLinear, 13);
    call_in(&c, DT_I8, SHAPE(3), NULL);
    call_in(&c, DT_F32, SCALAR, NULL);
    call_in(&c, DT_U8, SCALAR, NULL);
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts), cmocka_unit_test(types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
