#include "tests/model/infer_case.h"
#include "tests/runner.h"

static const Tensor x = {.dtype = DT_F32, .rank = 3, .dims = {2, 6, 4}};
static const Tensor c6 = {.dtype = DT_F32, .rank = 1, .dims = {6}};

static void batch_statistics_have_one_number_per_channel(void **state) {
    (void)state;
    const Tensor c5 = SHAPE(DT_F32, 5), all = SHAPE(DT_F32, 6, 4);
    INFER_GIVES(x, OP_BatchNormalization, 15, .in = {x, c6, c6, c6, c6});
    INFER_FAILS(ERR_INVALID, OP_BatchNormalization, 15, .in = {x, c6, c5, c6, c6});
    INFER_FAILS(ERR_INVALID, OP_BatchNormalization, 15, .in = {x, all, all, all, all});
    INFER_GIVES(x, OP_BatchNormalization, 7, .in = {x, all, all, all, all},
                .attrs = {INT("spatial", 0)});
    INFER_FAILS(ERR_INVALID, OP_BatchNormalization, 7, .in = {x, c6, c6, c6, c6},
                .attrs = {INT("spatial", 0)});
    INFER_FAILS(ERR_INVALID, OP_BatchNormalization, 15, .in = {SCALAR(DT_F32), c6, c6, c6, c6});
    INFER_FAILS(ERR_INVALID, OP_BatchNormalization, 15, .in = {x, c6, c6, c6, c6}, .n_out = 5);
}

static void batch_outputs_follow_the_statistics(void **state) {
    (void)state;
    Tensor       out[INFER_MAX];
    const Tensor f64 = SHAPE(DT_F64, 6);
    InferCase    a = {
           .op = OP_BatchNormalization, .version = 15, .n_out = 3, .in = {x, c6, c6, f64, f64}};
    assert_int_equal(infer_case(&a, out), ERR_OK);
    assert_int_equal(out[1].dtype, DT_F64);
    assert_true(tensor_same_shape(&out[2], &c6));
}

static void groups_divide_the_channels(void **state) {
    (void)state;
    const Tensor c3 = SHAPE(DT_F32, 3);
    INFER_GIVES(x, OP_GroupNormalization, 18, .in = {x, c3, c3}, .attrs = {INT("num_groups", 3)});
    INFER_GIVES(x, OP_GroupNormalization, 21, .in = {x, c6, c6}, .attrs = {INT("num_groups", 3)});
    INFER_FAILS(ERR_INVALID, OP_GroupNormalization, 21, .in = {x, c3, c3},
                .attrs = {INT("num_groups", 3)});
    INFER_FAILS(ERR_INVALID, OP_GroupNormalization, 18, .in = {x, c3, c3},
                .attrs = {INT("num_groups", 4)});
    INFER_FAILS(ERR_INVALID, OP_GroupNormalization, 18, .in = {x, c3, c3},
                .attrs = {INT("num_groups", 0)});
    INFER_FAILS(ERR_INVALID, OP_GroupNormalization, 18, .in = {x, c3, c3},
                .attrs = {INT("num_groups", -3)});
    INFER_FAILS(ERR_INVALID, OP_GroupNormalization, 18, .in = {c6, c6, c6},
                .attrs = {INT("num_groups", 1)});
}

static void layers_keep_statistics_of_the_stash_type(void **state) {
    (void)state;
    Tensor       out[INFER_MAX];
    const Tensor scale = SHAPE(DT_F32, 6, 4), want = SHAPE(DT_BF16, 2, 1, 1);
    InferCase    a = {.op = OP_LayerNormalization,
                      .version = 17,
                      .n_out = 3,
                      .in = {x, scale},
                      .attrs = {INT("axis", 1), INT("stash_type", DT_BF16)}};
    assert_int_equal(infer_case(&a, out), ERR_OK);
    assert_int_equal(out[1].dtype, DT_BF16);
    assert_true(tensor_same_shape(&out[2], &want));
    a.attrs[1].v.i = DT_I32;
    assert_int_equal(infer_case(&a, out), ERR_INVALID);
    INFER_FAILS(ERR_INVALID, OP_LayerNormalization, 17, .in = {x, scale},
                .attrs = {INT("axis", 3)});
    INFER_FAILS(ERR_INVALID, OP_LayerNormalization, 17, .in = {x, c6});
    INFER_FAILS(ERR_INVALID, OP_LayerNormalization, 17, .in = {x, SHAPE(DT_F32, 2, 2, 6, 4)});
    INFER_FAILS(ERR_INVALID, OP_RMSNormalization, 23, .in = {SCALAR(DT_F32), SCALAR(DT_F32)});
}

static void skips_give_the_sum_too(void **state) {
    (void)state;
    Tensor       out[INFER_MAX];
    const Tensor g = SHAPE(DT_F32, 4);
    InferCase    a = {.op = OP_MsSkipLayerNorm, .version = 1, .n_out = 4, .in = {x, x, g, g, g}};
    assert_int_equal(infer_case(&a, out), ERR_OK);
    assert_true(tensor_same_shape(&out[3], &x));
    a.in[1] = c6;
    assert_int_equal(infer_case(&a, out), ERR_INVALID);
}

static void sets_and_windows_are_checked(void **state) {
    (void)state;
    INFER_FAILS(ERR_INVALID, OP_MeanVarianceNormalization, 13, .in = {x});
    INFER_GIVES(x, OP_MeanVarianceNormalization, 13, .in = {x}, .attrs = {INTS("axes", 0, -1)});
    INFER_FAILS(ERR_INVALID, OP_LpNormalization, 1, .in = {x}, .attrs = {INT("axis", 3)});
    INFER_FAILS(ERR_INVALID, OP_LpNormalization, 1, .in = {x}, .attrs = {INT("p", 3)});
    INFER_FAILS(ERR_INVALID, OP_LRN, 13, .in = {x});
    INFER_FAILS(ERR_INVALID, OP_LRN, 13, .in = {c6}, .attrs = {INT("size", 3)});
    INFER_GIVES(x, OP_LRN, 13, .in = {x}, .attrs = {INT("size", INT64_MAX)});
}

static void losses_need_targets_without_classes(void **state) {
    (void)state;
    const Tensor t = SHAPE(DT_I64, 2, 4);
    INFER_GIVES(SCALAR(DT_F32), OP_NegativeLogLikelihoodLoss, 13, .in = {x, t, c6});
    INFER_GIVES(SHAPE(DT_F32, 2, 4), OP_SoftmaxCrossEntropyLoss, 13, .in = {x, t},
                .attrs = {TEXT("reduction", "none")});
    INFER_FAILS(ERR_INVALID, OP_SoftmaxCrossEntropyLoss, 13, .in = {x, SHAPE(DT_I64, 2)});
    INFER_FAILS(ERR_INVALID, OP_SoftmaxCrossEntropyLoss, 13, .in = {x, SHAPE(DT_I64, 2, 6)});
    INFER_FAILS(ERR_INVALID, OP_SoftmaxCrossEntropyLoss, 13, .in = {x, t, SHAPE(DT_F32, 5)});
    INFER_FAILS(ERR_INVALID, OP_SoftmaxCrossEntropyLoss, 13, .in = {c6, SCALAR(DT_I64)});
    INFER_FAILS(ERR_INVALID, OP_SoftmaxCrossEntropyLoss, 13, .in = {x, t},
                .attrs = {TEXT("reduction", "max")});
}

static void determinants_need_squares(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_F32, 5), OP_Det, 11, .in = {SHAPE(DT_F32, 5, 3, 3)});
    INFER_FAILS(ERR_INVALID, OP_Det, 11, .in = {x});
    INFER_FAILS(ERR_INVALID, OP_Det, 11, .in = {c6});
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_statistics_have_one_number_per_channel),
        cmocka_unit_test(batch_outputs_follow_the_statistics),
        cmocka_unit_test(groups_divide_the_channels),
        cmocka_unit_test(layers_keep_statistics_of_the_stash_type),
        cmocka_unit_test(skips_give_the_sum_too),
        cmocka_unit_test(sets_and_windows_are_checked),
        cmocka_unit_test(losses_need_targets_without_classes),
        cmocka_unit_test(determinants_need_squares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
