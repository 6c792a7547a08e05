// Shape inference of data movement, including hostile parameters.
#include "tests/model/infer_case.h"
#include "tests/runner.h"

#define LEN(T, ...) (sizeof((T[]){__VA_ARGS__}) / sizeof(T))
#define LIST(...)                                                                                  \
    tensor_of(DT_I64, 1, (const int64_t[]){LEN(int64_t, __VA_ARGS__)}, (int64_t[]){__VA_ARGS__})
#define NUMBER(v) tensor_of(DT_I64, 0, NULL, (int64_t[]){v})
#define REALS(...)                                                                                 \
    tensor_of(DT_F32, 1, (const int64_t[]){LEN(float, __VA_ARGS__)}, (float[]){__VA_ARGS__})
#define UNKNOWN(t) ((Tensor){.dtype = (t), .rank = RANK_UNKNOWN})

static const Tensor x234 = {.dtype = DT_F32, .rank = 3, .dims = {2, 3, 4}};
static const Tensor none = {.dtype = DT_I64, .rank = 1};

static void reshape_counts(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_F32, 6, 4), OP_Reshape, 14, .in = {x234, LIST(-1, 4)});
    INFER_GIVES(SHAPE(DT_F32, 2, 12), OP_Reshape, 5, .in = {x234, LIST(0, -1)});
    INFER_GIVES(SHAPE(DT_F32, 24), OP_Reshape, 1, .in = {x234}, .attrs = {INTS("shape", 24)});
    INFER_GIVES(SCALAR(DT_F32), OP_Reshape, 14, .in = {SHAPE(DT_F32, 1, 1), none});
    INFER_GIVES(SHAPE(DT_F32, 0, 9), OP_Reshape, 14, .in = {SHAPE(DT_F32, 3, 0), LIST(0, 9)},
                .attrs = {INT("allowzero", 1)});
    INFER_GIVES(SHAPE(DT_F32, 0, 4), OP_Reshape, 14, .in = {SHAPE(DT_F32, 0, 8), LIST(-1, 4)});
    INFER_GIVES(UNKNOWN(DT_F32), OP_Reshape, 14, .in = {x234, SHAPE(DT_I64, 2)});
}

static void reshape_rejects(void **state) {
    (void)state;
    INFER_FAILS(ERR_INVALID, OP_Reshape, 14, .in = {x234, LIST(-1, -1)});
    INFER_FAILS(ERR_INVALID, OP_Reshape, 14, .in = {x234, LIST(5, -1)});
    INFER_FAILS(ERR_INVALID, OP_Reshape, 14, .in = {x234, LIST(24, 1, 1, 0)});
    INFER_FAILS(ERR_INVALID, OP_Reshape, 14, .in = {x234, LIST(25)});
    INFER_FAILS(ERR_INVALID, OP_Reshape, 14, .in = {x234, LIST(INT64_MIN, 24)});
    INFER_FAILS(ERR_LIMIT, OP_Reshape, 14, .in = {x234, LIST(INT64_MAX, 3)});
    INFER_FAILS(ERR_LIMIT, OP_Reshape, 14, .in = {x234, LIST(-1, INT64_MAX, INT64_MAX)});
    INFER_FAILS(ERR_INVALID, OP_Reshape, 14, .in = {SHAPE(DT_F32, 0, 3), LIST(0, -1)});
    INFER_FAILS(ERR_INVALID, OP_Reshape, 14, .in = {x234, LIST(1, 1, 1, 1, 1, 1, 1, 1, 24)});
    INFER_FAILS(ERR_INVALID, OP_Reshape, 14, .in = {x234});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Reshape, 14, .in = {x234, REALS(24)});
    INFER_FAILS(ERR_LIMIT, OP_Reshape, 14, .in = {SHAPE(DT_F32, INT64_MAX, INT64_MAX), LIST(-1)});
}

static void axes_come_and_go(void **state) {
    (void)state;
    const Tensor one = SHAPE(DT_F32, 1, 3, 1);
    INFER_GIVES(SHAPE(DT_F32, 3), OP_Squeeze, 13, .in = {one});
    INFER_GIVES(SHAPE(DT_F32, 1, 3), OP_Squeeze, 13, .in = {one, LIST(-1)});
    INFER_GIVES(SHAPE(DT_F32, 3, 1), OP_Squeeze, 1, .in = {one}, .attrs = {INTS("axes", 0)});
    INFER_GIVES(SHAPE(DT_F32, 1, 1, 3, 1), OP_Unsqueeze, 13, .in = {one, LIST(0)});
    INFER_GIVES(SHAPE(DT_F32, 1, 3, 1, 1), OP_Unsqueeze, 11, .in = {one},
                .attrs = {INTS("axes", -1)});
    INFER_GIVES(SHAPE(DT_F32, 6, 4), OP_Flatten, 13, .in = {x234}, .attrs = {INT("axis", -1)});
    INFER_GIVES(SHAPE(DT_F32, 1, 24), OP_Flatten, 13, .in = {x234}, .attrs = {INT("axis", 0)});
    INFER_FAILS(ERR_INVALID, OP_Squeeze, 13, .in = {one, LIST(1)});
    INFER_FAILS(ERR_INVALID, OP_Squeeze, 13, .in = {one, LIST(0, -3)});
    INFER_FAILS(ERR_INVALID, OP_Squeeze, 13, .in = {one, LIST(INT64_MIN)});
    INFER_FAILS(ERR_INVALID, OP_Unsqueeze, 13, .in = {one, LIST(0, 0)});
    INFER_FAILS(ERR_INVALID, OP_Unsqueeze, 13, .in = {one, LIST(4)});
    INFER_FAILS(ERR_INVALID, OP_Unsqueeze, 13, .in = {one});
    INFER_FAILS(ERR_INVALID, OP_Unsqueeze, 13, .in = {one, LIST(0, 1, 2, 3, 4, 5)});
    INFER_FAILS(ERR_INVALID, OP_Flatten, 13, .in = {x234}, .attrs = {INT("axis", 4)});
    INFER_FAILS(ERR_INVALID, OP_Transpose, 13, .in = {x234}, .attrs = {INTS("perm", 0, 1)});
    INFER_FAILS(ERR_INVALID, OP_Transpose, 13, .in = {x234}, .attrs = {INTS("perm", 0, 1, 1)});
    INFER_GIVES(SHAPE(DT_F32, 4, 3, 2), OP_Transpose, 13, .in = {x234});
}

static void slices_clamp(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_F32, 2, 3, 2), OP_Slice, 13,
                .in = {x234, LIST(INT64_MIN), LIST(INT64_MAX), LIST(-1), LIST(2)});
    INFER_GIVES(SHAPE(DT_F32, 2, 3, 4), OP_Slice, 13,
                .in = {x234, LIST(INT64_MAX), LIST(INT64_MIN), LIST(2), LIST(-1)});
    INFER_GIVES(SHAPE(DT_F32, 2, 3, 1), OP_Slice, 13,
                .in = {x234, LIST(3), LIST(INT64_MIN), LIST(2), LIST(INT64_MIN)});
    INFER_GIVES(SHAPE(DT_F32, 2, 3, 0), OP_Slice, 13, .in = {x234, LIST(3), LIST(1), LIST(2)});
    INFER_GIVES(SHAPE(DT_F32, 1, 2, 4), OP_Slice, 1, .in = {x234},
                .attrs = {INTS("starts", 1, 0), INTS("ends", 1000, -1)});
    INFER_GIVES(SHAPE(DT_F32, 0), OP_Slice, 13,
                .in = {SHAPE(DT_F32, 0), LIST(-1), LIST(-9), LIST(0), LIST(-1)});
    INFER_GIVES(UNKNOWN(DT_F32), OP_Slice, 13, .in = {x234, SHAPE(DT_I64, 1), LIST(1)});
    INFER_FAILS(ERR_INVALID, OP_Slice, 13, .in = {x234, LIST(0), LIST(1), LIST(0), LIST(0)});
    INFER_FAILS(ERR_INVALID, OP_Slice, 13, .in = {x234, LIST(0, 0), LIST(1, 1), LIST(0, -3)});
    INFER_FAILS(ERR_INVALID, OP_Slice, 13, .in = {x234, LIST(0), LIST(1, 2)});
    INFER_FAILS(ERR_INVALID, OP_Slice, 13, .in = {x234, LIST(0, 0, 0, 0), LIST(1, 1, 1, 1)});
    INFER_FAILS(ERR_INVALID, OP_Slice, 13, .in = {x234});
}

static void parts_add_up(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_F32, 2, 6, 4), OP_Concat, 13, .in = {x234, x234},
                .attrs = {INT("axis", -2)});
    INFER_GIVES(SHAPE(DT_F32, 2, 6, 4), OP_Concat, 1, .in = {x234, x234});
    INFER_FAILS(ERR_INVALID, OP_Concat, 13, .in = {x234, x234});
    INFER_FAILS(ERR_INVALID, OP_Concat, 13, .in = {x234, SHAPE(DT_F32, 2, 3)},
                .attrs = {INT("axis", 0)});
    INFER_FAILS(ERR_INVALID, OP_Concat, 13, .in = {x234, SHAPE(DT_F64, 2, 3, 4)},
                .attrs = {INT("axis", 0)});
    INFER_FAILS(ERR_INVALID, OP_Concat, 13, .in = {x234, LEFT_OUT}, .attrs = {INT("axis", 0)});
    INFER_FAILS(ERR_LIMIT, OP_Concat, 13, .in = {SHAPE(DT_U8, INT64_MAX), SHAPE(DT_U8, 1)},
                .attrs = {INT("axis", 0)});
    INFER_GIVES(SHAPE(DT_F32, 2, 3, 1), OP_Split, 13, .in = {x234, LIST(1, 3)}, .n_out = 2,
                .attrs = {INT("axis", 2)});
    INFER_GIVES(SHAPE(DT_F32, 1, 3, 4), OP_Split, 2, .in = {x234}, .n_out = 2);
    INFER_GIVES(SHAPE(DT_F32, 2, 2, 4), OP_Split, 18, .in = {x234}, .n_out = 2,
                .attrs = {INT("axis", 1), INT("num_outputs", 2)});
    INFER_FAILS(ERR_INVALID, OP_Split, 13, .in = {x234}, .n_out = 2, .attrs = {INT("axis", 1)});
    INFER_FAILS(ERR_INVALID, OP_Split, 18, .in = {x234}, .n_out = 2,
                .attrs = {INT("num_outputs", 1)});
    INFER_FAILS(ERR_INVALID, OP_Split, 13, .in = {x234, LIST(1, 1, 1)}, .n_out = 2);
    INFER_FAILS(ERR_INVALID, OP_Split, 13, .in = {x234, LIST(-1, 3)}, .n_out = 2);
    INFER_FAILS(ERR_INVALID, OP_Split, 13, .in = {x234, LIST(INT64_MAX, 2)}, .n_out = 2);
    INFER_FAILS(ERR_INVALID, OP_Split, 2, .in = {x234}, .n_out = 2, .attrs = {INTS("split", 2)});
}

static void pads_fit(void **state) {
    (void)state;
    const Tensor x = SHAPE(DT_F32, 3, 4);
    INFER_GIVES(SHAPE(DT_F32, 4, 6), OP_Pad, 13, .in = {x, LIST(0, 2, 1, 0)});
    INFER_GIVES(SHAPE(DT_F32, 3, 7), OP_Pad, 18, .in = {x, LIST(1, 2), LEFT_OUT, LIST(-1)});
    INFER_GIVES(SHAPE(DT_F32, 2, 4), OP_Pad, 2, .in = {x}, .attrs = {INTS("pads", -1, 0, 0, 0)});
    INFER_GIVES(SHAPE(DT_F32, 5, 4), OP_Pad, 1, .in = {x}, .attrs = {INTS("paddings", 2, 0, 0, 0)});
    INFER_GIVES(SHAPE(DT_F32, 4, 2), OP_CenterCropPad, 18, .in = {x, LIST(4, 2)});
    INFER_FAILS(ERR_INVALID, OP_Pad, 13, .in = {x, LIST(0, -3, 0, -2)});
    INFER_FAILS(ERR_INVALID, OP_Pad, 13, .in = {x, LIST(INT64_MIN, 0, INT64_MIN, 0)});
    INFER_FAILS(ERR_LIMIT, OP_Pad, 13, .in = {x, LIST(INT64_MAX, 0, INT64_MAX, 0)});
    INFER_FAILS(ERR_INVALID, OP_Pad, 13, .in = {x, LIST(1, 1)});
    INFER_FAILS(ERR_INVALID, OP_Pad, 13, .in = {x, LIST(1, 1, 1, 1), SHAPE(DT_F64, 1)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Pad, 13, .in = {x, LIST(1, 1, 1, 1)},
                .attrs = {TEXT("mode", "x")});
    INFER_FAILS(ERR_INVALID, OP_Pad, 13, .in = {SHAPE(DT_F32, 0), LIST(1, 0)},
                .attrs = {TEXT("mode", "edge")});
    INFER_FAILS(ERR_INVALID, OP_CenterCropPad, 18, .in = {x, LIST(-1, 2)});
}

static void copies_multiply(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_F32, 4, 0, 4), OP_Tile, 13, .in = {x234, LIST(2, 0, 1)});
    INFER_GIVES(SHAPE(DT_F32, 2, 3, 12), OP_Tile, 1, .in = {x234, REALS(3), REALS(2)});
    INFER_FAILS(ERR_LIMIT, OP_Tile, 13, .in = {x234, LIST(INT64_MAX, 1, 1)});
    INFER_FAILS(ERR_INVALID, OP_Tile, 13, .in = {x234, LIST(-1, 1, 1)});
    INFER_FAILS(ERR_INVALID, OP_Tile, 13, .in = {x234, LIST(1)});
    INFER_GIVES(SHAPE(DT_F32, 5, 2, 3, 4), OP_Expand, 13, .in = {x234, LIST(5, 1, 1, 4)});
    INFER_FAILS(ERR_INVALID, OP_Expand, 13, .in = {x234, LIST(-1, 1, 1)});
    INFER_FAILS(ERR_INVALID, OP_Expand, 13, .in = {x234, LIST(5)});
    INFER_GIVES(SHAPE(DT_F32, 1, 1, 4, 6), OP_DepthToSpace, 13, .in = {SHAPE(DT_F32, 1, 4, 2, 3)},
                .attrs = {INT("blocksize", 2)});
    INFER_FAILS(ERR_INVALID, OP_DepthToSpace, 13, .in = {SHAPE(DT_F32, 1, 4, 2, 3)},
                .attrs = {INT("blocksize", INT64_MAX)});
    INFER_FAILS(ERR_INVALID, OP_DepthToSpace, 13, .in = {SHAPE(DT_F32, 1, 4, 2, 3)});
    INFER_FAILS(ERR_INVALID, OP_SpaceToDepth, 13, .in = {SHAPE(DT_F32, 1, 4, 2, 3)},
                .attrs = {INT("blocksize", 2)});
}

static void indices_shape(void **state) {
    (void)state;
    const Tensor at = SHAPE(DT_I64, 5, 2);
    INFER_GIVES(SHAPE(DT_F32, 2, 5, 2, 4), OP_Gather, 13, .in = {x234, at},
                .attrs = {INT("axis", 1)});
    INFER_GIVES(SHAPE(DT_F32, 3, 4), OP_Gather, 1, .in = {x234, SCALAR(DT_I32)});
    INFER_GIVES(SHAPE(DT_F32, 5, 4), OP_GatherND, 13, .in = {x234, at});
    INFER_GIVES(SHAPE(DT_F32, 2, 4), OP_GatherND, 12, .in = {x234, SHAPE(DT_I64, 2, 1)},
                .attrs = {INT("batch_dims", 1)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_Gather, 13, .in = {x234, x234});
    INFER_FAILS(ERR_INVALID, OP_Gather, 13, .in = {SCALAR(DT_F32), at});
    INFER_FAILS(ERR_INVALID, OP_GatherND, 13, .in = {x234, SHAPE(DT_I64, 5, 4)});
    INFER_FAILS(ERR_INVALID, OP_GatherND, 13, .in = {x234, SHAPE(DT_I64, 5, 0)});
    INFER_FAILS(ERR_INVALID, OP_GatherND, 13, .in = {x234, at}, .attrs = {INT("batch_dims", 2)});
    INFER_FAILS(ERR_INVALID, OP_GatherElements, 13, .in = {x234, at});
    INFER_FAILS(ERR_INVALID, OP_GatherElements, 13, .in = {x234, SHAPE(DT_I64, 2, 4, 4)});
    INFER_GIVES(x234, OP_ScatterND, 16, .in = {x234, at, SHAPE(DT_F32, 5, 4)});
    INFER_FAILS(ERR_INVALID, OP_ScatterND, 16, .in = {x234, at, SHAPE(DT_F32, 5)});
    INFER_FAILS(ERR_INVALID, OP_ScatterND, 16, .in = {x234, SHAPE(DT_I64, 2, 9), x234});
    INFER_FAILS(ERR_INVALID, OP_ScatterElements, 16,
                .in = {x234, SHAPE(DT_I64, 1, 1, 1), SHAPE(DT_F32, 1)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_ScatterND, 16, .in = {x234, at, SHAPE(DT_F32, 5, 4)},
                .attrs = {TEXT("reduction", "xor")});
}

static void made_tensors(void **state) {
    (void)state;
    INFER_GIVES(SHAPE(DT_I64, 2), OP_Shape, 15, .in = {x234},
                .attrs = {INT("start", -2), INT("end", INT64_MAX)});
    INFER_GIVES(SHAPE(DT_I64, 0), OP_Shape, 15, .in = {x234}, .attrs = {INT("end", INT64_MIN)});
    INFER_GIVES(SHAPE(DT_F32, 2, 0), OP_ConstantOfShape, 9, .in = {LIST(2, 0)});
    INFER_FAILS(ERR_INVALID, OP_ConstantOfShape, 9, .in = {LIST(2, -1)});
    INFER_GIVES(SHAPE(DT_I64, 4), OP_Range, 11, .in = {NUMBER(1), NUMBER(-6), NUMBER(-2)});
    INFER_GIVES(SHAPE(DT_F32, 0), OP_Range, 11, .in = {REALS(1), REALS(0), REALS(1)});
    INFER_FAILS(ERR_INVALID, OP_Range, 11, .in = {NUMBER(1), NUMBER(2), NUMBER(0)});
    INFER_FAILS(ERR_LIMIT, OP_Range, 11, .in = {NUMBER(INT64_MIN), NUMBER(INT64_MAX), NUMBER(1)});
    INFER_FAILS(ERR_LIMIT, OP_Range, 11, .in = {REALS(0), REALS(1), REALS(1e-38f)});
    INFER_GIVES(SHAPE(DT_F32, 3, 4), OP_OneHot, 11,
                .in = {SHAPE(DT_I64, 4), NUMBER(3), REALS(0, 1)}, .attrs = {INT("axis", 0)});
    INFER_FAILS(ERR_INVALID, OP_OneHot, 11, .in = {SHAPE(DT_I64, 4), NUMBER(-3), REALS(0, 1)});
    INFER_FAILS(ERR_INVALID, OP_OneHot, 11, .in = {SHAPE(DT_I64, 4), NUMBER(3), REALS(0)});
    INFER_FAILS(ERR_INVALID, OP_OneHot, 11, .in = {SHAPE(DT_I64, 4), NUMBER(3), REALS(0, 1)},
                .attrs = {INT("axis", 2)});
    INFER_FAILS(ERR_INVALID, OP_EyeLike, 9, .in = {x234});
    INFER_FAILS(ERR_UNSUPPORTED, OP_EyeLike, 9, .in = {SHAPE(DT_F32, 2, 2)},
                .attrs = {INT("dtype", 99)});
    INFER_FAILS(ERR_INVALID, OP_Trilu, 14, .in = {SHAPE(DT_F32, 2)});
    INFER_FAILS(ERR_INVALID, OP_RandomUniform, 1, .attrs = {INTS("shape", 2, -1)});
    INFER_FAILS(ERR_UNSUPPORTED, OP_RandomNormal, 1, .attrs = {INTS("shape", 2), INT("dtype", 7)});
}

static void signals_fit(void **state) {
    (void)state;
    const Tensor wave = SHAPE(DT_F32, 1, 128, 1), wave2 = SHAPE(DT_F32, 1, 128, 2);
    INFER_GIVES(SHAPE(DT_F32, 1, 65, 2), OP_DFT, 17, .in = {wave}, .attrs = {INT("onesided", 1)});
    INFER_GIVES(SHAPE(DT_F32, 1, 16, 2), OP_DFT, 20, .in = {wave, NUMBER(16)});
    INFER_FAILS(ERR_INVALID, OP_DFT, 17, .in = {wave}, .attrs = {INT("axis", 2)});
    INFER_FAILS(ERR_INVALID, OP_DFT, 17, .in = {wave, NUMBER(0)});
    INFER_FAILS(ERR_INVALID, OP_DFT, 17, .in = {wave2}, .attrs = {INT("onesided", 1)});
    INFER_GIVES(SHAPE(DT_F32, 1, 15, 9, 2), OP_STFT, 17,
                .in = {wave, NUMBER(8), LEFT_OUT, NUMBER(16)});
    INFER_FAILS(ERR_INVALID, OP_STFT, 17, .in = {wave, NUMBER(8)});
    INFER_FAILS(ERR_INVALID, OP_STFT, 17, .in = {wave, NUMBER(0), LEFT_OUT, NUMBER(16)});
    INFER_FAILS(ERR_INVALID, OP_STFT, 17, .in = {wave, NUMBER(8), LEFT_OUT, NUMBER(129)});
    INFER_FAILS(ERR_INVALID, OP_STFT, 17, .in = {wave, NUMBER(8), SHAPE(DT_F32, 9), NUMBER(16)});
    INFER_FAILS(ERR_INVALID, OP_HannWindow, 17, .in = {NUMBER(-1)});
    INFER_FAILS(ERR_INVALID, OP_MelWeightMatrix, 17,
                .in = {NUMBER(8), NUMBER(16), NUMBER(8192), REALS(100), REALS(50)});
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshape_counts),   cmocka_unit_test(reshape_rejects),
        cmocka_unit_test(axes_come_and_go), cmocka_unit_test(slices_clamp),
        cmocka_unit_test(parts_add_up),     cmocka_unit_test(pads_fit),
        cmocka_unit_test(copies_multiply),  cmocka_unit_test(indices_shape),
        cmocka_unit_test(made_tensors),     cmocka_unit_test(signals_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
