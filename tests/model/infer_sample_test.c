// Shape inference of GridSample, AffineGrid, RoiAlign, DeformConv and Col2Im, and invalid
// parameters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/model/call.h"
#include "tests/runner.h"

static void grid(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_GridSample, 20);
    call_in(&c, DT_F32, SHAPE(2, 3, 4, 5, 6), NULL);
    call_in(&c, DT_F32, SHAPE(2, 7, 8, 9, 3), NULL);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(2, 3, 7, 8, 9)));
    c.tensors[1].dims[4] = 2;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[1].dims[4] = 3;
    c.tensors[0].dims[3] = 0;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[0].dims[3] = 5;
    call_str(&c, "mode", "quintic");
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
    call_finish(&c);
}

static void affine(void **state) {
    (void)state;
    int64_t size[4] = {2, 3, 5, 6};
    Call    c;
    call_begin(&c, OP_AffineGrid, 20);
    call_in(&c, DT_F32, SHAPE(2, 2, 3), NULL);
    call_in(&c, DT_I64, SHAPE(4), NULL);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_int_equal(c.out[0].rank, RANK_UNKNOWN);
    c.tensors[1].data = size;
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(2, 5, 6, 2)));
    size[2] = -5;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[1].dims[0] = 1;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void regions(void **state) {
    (void)state;
    static const int64_t bad[] = {0, -1, INT64_MAX};
    Call                 c;
    call_begin(&c, OP_RoiAlign, 16);
    call_in(&c, DT_F32, SHAPE(1, 3, 4, 4), NULL);
    call_in(&c, DT_F32, SHAPE(5, 4), NULL);
    call_in(&c, DT_I64, SHAPE(5), NULL);
    call_int(&c, "output_height", 2);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(5, 3, 2, 1)));
    for (size_t i = 0; i < 3; i++) {
        c.attrs[0].v.i = bad[i];
        assert_int_equal(call_infer(&c), ERR_INVALID);
    }
    c.attrs[0] = (Attr){.name = "sampling_ratio", .kind = ATTR_INT, .v.i = 1 << 20};
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void deform(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_DeformConv, 19);
    call_in(&c, DT_F32, SHAPE(1, 4, 5, 5), NULL);
    call_in(&c, DT_F32, SHAPE(6, 4, 2, 2), NULL);
    call_in(&c, DT_F32, SHAPE(1, 16, 4, 4), NULL);
    call_skip(&c);
    call_in(&c, DT_F32, SHAPE(1, 8, 4, 4), NULL);
    call_int(&c, "offset_group", 2);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(1, 6, 4, 4)));
    static const int64_t bad[] = {0, 3, 4, -2, INT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        c.attrs[0].v.i = bad[i];
        assert_int_equal(call_infer(&c), ERR_INVALID);
    }
    call_finish(&c);
}

static void columns(void **state) {
    (void)state;
    int64_t image_size[2] = {5, 5}, block[2] = {1, 5};
    Call    c;
    call_begin(&c, OP_Col2Im, 18);
    call_in(&c, DT_F32, SHAPE(1, 10, 5), NULL);
    call_in(&c, DT_I64, SHAPE(2), image_size);
    call_in(&c, DT_I64, SHAPE(2), block);
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(1, 2, 5, 5)));
    block[1] = 4;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    block[1] = INT64_MAX;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    block[1] = 5;
    image_size[0] = -1;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.tensors[1].data = NULL;
    assert_int_equal(call_infer(&c), ERR_OK);
    assert_int_equal(c.out[0].rank, RANK_UNKNOWN);
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid),   cmocka_unit_test(affine),  cmocka_unit_test(regions),
        cmocka_unit_test(deform), cmocka_unit_test(columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
