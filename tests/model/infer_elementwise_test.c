#include "tests/model/infer_case.h"
#include "tests/runner.h"

static void operands_broadcast(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_F32, 2, 3, 4), OP_Add, 13,
                .in = {SHAPE(DT_F32, 3, 1), SHAPE(DT_F32, 2, 1, 4)});
    INFER_GIVES(SHAPE(DT_BOOL, 3), OP_Less, 13, .in = {SHAPE(DT_I8, 3), SCALAR(DT_I8)});
    INFER_GIVES(SHAPE(DT_F16, 4, 0), OP_Mul, 13, .in = {SHAPE(DT_F16, 4, 1), SHAPE(DT_F16, 1, 0)});
    INFER_FAILS(ERR_INVALID, OP_Add, 13, .in = {SHAPE(DT_F32, 3), SHAPE(DT_F32, 4)});
    INFER_FAILS(ERR_INVALID, OP_Add, 13, .in = {SHAPE(DT_F32, 3), SHAPE(DT_F64, 3)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Add, 13, .in = {SHAPE(DT_STR, 3), SHAPE(DT_STR, 3)});
}

static void old_broadcasts_name_an_axis(void **state) {
    (void)state;
    const Tensor a = SHAPE(DT_F32, 2, 3, 4, 5), b = SHAPE(DT_F32, 3, 4);
    INFER_GIVES(a, OP_Add, 6, .in = {a, b}, .attrs = {INT("broadcast", 1), INT("axis", 1)});
    INFER_GIVES(a, OP_Add, 6, .in = {a, b}, .attrs = {INT("broadcast", 1), INT("axis", -3)});
    INFER_FAILS(ERR_INVALID, OP_Add, 6, .in = {a, b},
                .attrs = {INT("broadcast", 1), INT("axis", 3)});
    INFER_FAILS(ERR_INVALID, OP_Add, 6, .in = {a, b},
                .attrs = {INT("broadcast", 1), INT("axis", INT64_MIN)});
    INFER_FAILS(ERR_INVALID, OP_Add, 6, .in = {b, a},
                .attrs = {INT("broadcast", 1), INT("axis", 0)});
    INFER_FAILS(ERR_INVALID, OP_Add, 7, .in = {a, b},
                .attrs = {INT("broadcast", 1), INT("axis", 1)});
}

static void slopes_broadcast_one_way(void **state) {
    (void)state;
    const Tensor x = SHAPE(DT_F32, 2, 3, 4);
    INFER_GIVES(x, OP_PRelu, 6, .in = {x, SHAPE(DT_F32, 3)});
    INFER_GIVES(x, OP_PRelu, 9, .in = {x, SHAPE(DT_F32, 3, 1)});
    INFER_FAILS(ERR_INVALID, OP_PRelu, 9, .in = {x, SHAPE(DT_F32, 3)});
    INFER_FAILS(ERR_INVALID, OP_PRelu, 9, .in = {SHAPE(DT_F32, 3, 1), SHAPE(DT_F32, 3, 4)});
}

static void attributes_are_checked(void **state) {
    (void)state;
    const Tensor u = SHAPE(DT_U8, 2), f = SHAPE(DT_F32, 2);
    INFER_GIVES(u, OP_BitShift, 11, .in = {u, u}, .attrs = {TEXT("direction", "LEFT")});
    INFER_FAILS(ERR_INVALID, OP_BitShift, 11, .in = {u, u}, .attrs = {TEXT("direction", "UP")});
    INFER_FAILS(ERR_INVALID, OP_BitShift, 11, .in = {u, u});
    INFER_FAILS(ERR_INVALID, OP_Mod, 13, .in = {f, f});
    INFER_GIVES(f, OP_Mod, 13, .in = {f, f}, .attrs = {INT("fmod", 1)});
    INFER_FAILS(ERR_INVALID, OP_Gelu, 20, .in = {f}, .attrs = {TEXT("approximate", "guess")});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Sqrt, 13, .in = {u});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Not, 13, .in = {u});
}

static void casts_name_their_type(void **state) {
    (void)state;
    const Tensor x = SHAPE(DT_F32, 2);
    INFER_GIVES(SHAPE(DT_I64, 2), OP_Cast, 13, .in = {x}, .attrs = {INT("to", DT_I64)});
    INFER_GIVES(SHAPE(DT_F16, 2), OP_Cast, 5, .in = {x}, .attrs = {TEXT("to", "FLOAT16")});
    INFER_GIVES(SHAPE(DT_STR, 2), OP_CastLike, 15, .in = {x, SHAPE(DT_STR, 7)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Cast, 13, .in = {x}, .attrs = {INT("to", 14)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Cast, 13, .in = {x}, .attrs = {INT("to", -1)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Cast, 13, .in = {x}, .attrs = {INT("to", INT64_MAX)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Cast, 13, .in = {x});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Cast, 5, .in = {x}, .attrs = {TEXT("to", "NUMBER")});
}

static void bounds_are_single_numbers_of_the_type(void **state) {
    (void)state;
    const Tensor x = SHAPE(DT_F32, 2);
    INFER_GIVES(x, OP_Clip, 13, .in = {x, LEFT_OUT, SCALAR(DT_F32)});
    INFER_FAILS(ERR_INVALID, OP_Clip, 13, .in = {x, SHAPE(DT_F32, 2)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Clip, 13, .in = {x, SCALAR(DT_F64)});
}

static void masks_change_their_type_with_the_version(void **state) {
    (void)state;
    Tensor    out[INFER_MAX];
    InferCase a = {.op = OP_Dropout, .version = 7, .in = {SHAPE(DT_F32, 2)}, .n_out = 2};
    assert_int_equal(infer_case(&a, out), ERR_OK);
    assert_int_equal(out[1].dtype, DT_F32);
    a.version = 13;
    assert_int_equal(infer_case(&a, out), ERR_OK);
    assert_int_equal(out[1].dtype, DT_BOOL);
    assert_true(tensor_same_shape(&out[0], &out[1]));
}

static void many_inputs_have_one_type(void **state) {
    (void)state;
    const Tensor a = SHAPE(DT_F32, 2, 1), b = SHAPE(DT_F32, 3);
    INFER_GIVES(SHAPE(DT_F32, 2, 3), OP_Sum, 13, .in = {a, b, a});
    INFER_FAILS(ERR_INVALID, OP_Max, 13, .in = {a, SHAPE(DT_I32, 3)});
    INFER_FAILS(ERR_INVALID, OP_Max, 13, .in = {a, LEFT_OUT, b});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Where, 9, .in = {a, a, a});
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_broadcast),
        cmocka_unit_test(old_broadcasts_name_an_axis),
        cmocka_unit_test(slopes_broadcast_one_way),
        cmocka_unit_test(attributes_are_checked),
        cmocka_unit_test(casts_name_their_type),
        cmocka_unit_test(bounds_are_single_numbers_of_the_type),
        cmocka_unit_test(masks_change_their_type_with_the_version),
        cmocka_unit_test(many_inputs_have_one_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
