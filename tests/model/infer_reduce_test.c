#include "tests/model/infer_case.h"
#include "tests/runner.h"

static const Tensor x = {.dtype = DT_F32, .rank = 3, .dims = {2, 3, 4}};

static void attributes_choose_dimensions(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_F32, 1, 1, 1), OP_ReduceMean, 13, .in = {x});
    INFER_GIVES(SCALAR(DT_F32), OP_ReduceMean, 13, .in = {x}, .attrs = {INT("keepdims", 0)});
    INFER_GIVES(SHAPE(DT_F32, 2, 4), OP_ReduceMax, 13, .in = {x},
                .attrs = {INTS("axes", -2), INT("keepdims", 0)});
    INFER_GIVES(SHAPE(DT_F32, 1, 3, 1), OP_ReduceMax, 13, .in = {x}, .attrs = {INTS("axes", 0, 2)});
    INFER_FAILS(ERR_INVALID, OP_ReduceMax, 13, .in = {x}, .attrs = {INTS("axes", 3)});
    INFER_FAILS(ERR_INVALID, OP_ReduceMax, 13, .in = {x}, .attrs = {INTS("axes", -4)});
    INFER_FAILS(ERR_INVALID, OP_ReduceMax, 13, .in = {x}, .attrs = {INTS("axes", INT64_MIN)});
    INFER_FAILS(ERR_INVALID, OP_ReduceMax, 13, .in = {SCALAR(DT_F32)}, .attrs = {INTS("axes", 0)});
}

static void inputs_choose_dimensions(void **state) {
    (void)state;
    int64_t      numbers[] = {1, -1};
    int64_t      many[9] = {0};
    const Tensor axes = tensor_of(DT_I64, 1, (int64_t[]){2}, numbers);
    const Tensor flood = tensor_of(DT_I64, 1, (int64_t[]){9}, many);
    INFER_GIVES(SHAPE(DT_F32, 2, 1, 1), OP_ReduceSum, 13, .in = {x, axes});
    INFER_GIVES(SHAPE(DT_F32, 2), OP_ReduceL2, 18, .in = {x, axes}, .attrs = {INT("keepdims", 0)});
    INFER_GIVES(SHAPE(DT_F32, 1, 1, 1), OP_ReduceSum, 13, .in = {x, SHAPE(DT_I64, 0)});
    INFER_GIVES(x, OP_ReduceSum, 13, .in = {x, SHAPE(DT_I64, 0)},
                .attrs = {INT("noop_with_empty_axes", 1)});
    INFER_GIVES(x, OP_ReduceSum, 13, .in = {x}, .attrs = {INT("noop_with_empty_axes", 1)});
    INFER_FAILS(ERR_INVALID, OP_ReduceSum, 13, .in = {x, flood});
    INFER_FAILS(ERR_UNSUPPORTED, OP_ReduceSum, 13, .in = {x, SHAPE(DT_F32, 1)});
}

static void unknown_axes_leave_the_shape_unknown(void **state) {
    (void)state;
    Tensor    out[INFER_MAX];
    InferCase a = {.op = OP_ReduceSum, .version = 13, .in = {x, SHAPE(DT_I64, 1)}};
    assert_int_equal(infer_case(&a, out), ERR_OK);
    assert_int_equal(out[0].dtype, DT_F32);
    assert_int_equal(out[0].rank, RANK_UNKNOWN);
}

static void places_are_int64_and_need_an_element(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_I64, 1, 3, 4), OP_ArgMax, 13, .in = {x});
    INFER_GIVES(SHAPE(DT_I64, 2, 3), OP_ArgMin, 13, .in = {x},
                .attrs = {INT("axis", -1), INT("keepdims", 0)});
    INFER_FAILS(ERR_INVALID, OP_ArgMin, 13, .in = {x}, .attrs = {INT("axis", 3)});
    INFER_FAILS(ERR_INVALID, OP_ArgMax, 13, .in = {SHAPE(DT_F32, 0, 2)});
    INFER_FAILS(ERR_INVALID, OP_ArgMax, 13, .in = {SCALAR(DT_F32)});
}

static void running_sums_check_their_axis(void **state) {
    (void)state;
    int64_t bad[] = {3};
    INFER_GIVES(x, OP_CumSum, 14, .in = {x, SCALAR(DT_I32)});
    INFER_FAILS(ERR_INVALID, OP_CumSum, 14, .in = {x, tensor_of(DT_I64, 0, NULL, bad)});
    INFER_FAILS(ERR_INVALID, OP_CumSum, 14, .in = {x, SHAPE(DT_I64, 2)});
    INFER_FAILS(ERR_INVALID, OP_CumSum, 14, .in = {x, SHAPE(DT_I64, 1, 1)});
}

static void softmax_checks_its_axis(void **state) {
    (void)state;
    INFER_GIVES(x, OP_Softmax, 13, .in = {x});
    INFER_GIVES(x, OP_Hardmax, 1, .in = {x}, .attrs = {INT("axis", 3)});
    INFER_FAILS(ERR_INVALID, OP_Softmax, 13, .in = {x}, .attrs = {INT("axis", 3)});
    INFER_FAILS(ERR_INVALID, OP_Softmax, 11, .in = {x}, .attrs = {INT("axis", -4)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_LogSoftmax, 13, .in = {SHAPE(DT_I32, 2)});
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_choose_dimensions),
        cmocka_unit_test(inputs_choose_dimensions),
        cmocka_unit_test(unknown_axes_leave_the_shape_unknown),
        cmocka_unit_test(places_are_int64_and_need_an_element),
        cmocka_unit_test(running_sums_check_their_axis),
        cmocka_unit_test(softmax_checks_its_axis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
