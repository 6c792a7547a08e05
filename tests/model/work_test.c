// Work of single nodes, computed by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/work.h"
#include "tests/runner.h"

static Tensor shaped(DType t, int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    return tensor_of(t, rank, (int64_t[]){a, b, c, d}, NULL);
}

// Inputs and outputs by hand; the second and later inputs are constants when weights is set.
static Work work(OpId op, const Tensor *in, uint32_t n_in, Tensor out, bool weights, Attr attr) {
    const Tensor *ins[9];
    bool          constant[9] = {false};
    Node n = {.name = "n", .op = op, .n_in = n_in, .n_out = 1, .n_attr = 1, .attrs = &attr};
    for (uint32_t i = 0; i < n_in; i++) {
        ins[i] = in[i].dtype != DT_NONE ? &in[i] : NULL;
        constant[i] = weights && i > 0;
    }
    return work_of(&n, ins, constant, &out);
}

static const Attr none = {.name = "none", .kind = ATTR_INT};

static void grouped_convolution(void **state) {
    (void)state;
    Tensor in[3] = {shaped(DT_F32, 4, 2, 8, 10, 10), shaped(DT_F32, 4, 12, 4, 3, 3),
                    shaped(DT_F32, 1, 12, 0, 0, 0)};
    Work   w = work(OP_Conv, in, 3, shaped(DT_F32, 4, 2, 12, 8, 8), true, none);
    assert_int_equal(w.macs, 2 * 12 * 64 * 4 * 9);
    assert_int_equal(w.params, 12 * 4 * 9 + 12);
    assert_int_equal(w.weight_bytes, 4 * w.params);
    assert_int_equal(w.in_bytes, 4 * 2 * 800);
    assert_int_equal(w.out_bytes, 4 * 2 * 12 * 64);
}

static void transposed_convolution(void **state) {
    (void)state;
    Tensor in[2] = {shaped(DT_F32, 4, 1, 8, 5, 5), shaped(DT_F32, 4, 8, 4, 2, 2)};
    Work   w = work(OP_ConvTranspose, in, 2, shaped(DT_F32, 4, 1, 4, 10, 10), true, none);
    assert_int_equal(w.macs, 8 * 25 * 4 * 4);
}

static void matrix_products(void **state) {
    (void)state;
    Tensor batched[2] = {shaped(DT_F32, 4, 2, 3, 5, 7), shaped(DT_F32, 4, 2, 3, 7, 11)};
    Work   w = work(OP_MatMul, batched, 2, shaped(DT_F32, 4, 2, 3, 5, 11), false, none);
    assert_int_equal(w.macs, 2 * 3 * 5 * 7 * 11);
    assert_int_equal(w.params, 0);
    Tensor turned[2] = {shaped(DT_F32, 2, 7, 5, 0, 0), shaped(DT_F32, 2, 7, 11, 0, 0)};
    Attr   trans = {.name = "transA", .kind = ATTR_INT, .v.i = 1};
    w = work(OP_Gemm, turned, 2, shaped(DT_F32, 2, 5, 11, 0, 0), true, trans);
    assert_int_equal(w.macs, 5 * 7 * 11);
    assert_int_equal(w.params, 77);
}

static void recurrent_layers(void **state) {
    (void)state;
    Tensor in[4] = {shaped(DT_F32, 3, 9, 2, 5, 0), shaped(DT_F32, 3, 2, 12, 5, 0),
                    shaped(DT_F32, 3, 2, 12, 3, 0), shaped(DT_F32, 2, 2, 24, 0, 0)};
    Work   w = work(OP_LSTM, in, 4, (Tensor){.rank = RANK_UNKNOWN}, true, none);
    assert_int_equal(w.macs, 9 * 2 * 2 * 12 * (5 + 3));
    assert_int_equal(w.out_bytes, 0);
}

static void einsum_multiplies_each_index_once(void **state) {
    (void)state;
    Tensor in[2] = {shaped(DT_F32, 4, 2, 3, 5, 7), shaped(DT_F32, 4, 2, 3, 11, 7)};
    Attr   eq = {.name = "equation", .kind = ATTR_STRING};
    eq.v.s = (Str){"bhid,bhjd->bhij", 15};
    Work w = work(OP_Einsum, in, 2, shaped(DT_F32, 4, 2, 3, 5, 11), false, eq);
    assert_int_equal(w.macs, 2 * 3 * 5 * 7 * 11);
    eq.v.s = (Str){"...id, ...jd", 12};
    w = work(OP_Einsum, in, 2, shaped(DT_F32, 4, 2, 3, 5, 11), false, eq);
    assert_int_equal(w.macs, 2 * 3 * 5 * 7 * 11);
    eq.v.s = (Str){"abcdefgh,xy", 11};  // does not fit the tensors
    w = work(OP_Einsum, in, 2, shaped(DT_F32, 4, 2, 3, 5, 11), false, eq);
    assert_int_equal(w.macs, 0);
}

static void statistics_limits_and_scales_are_not_learned(void **state) {
    (void)state;
    Tensor c = shaped(DT_F32, 1, 8, 0, 0, 0), x = shaped(DT_F32, 4, 1, 8, 2, 2);
    Tensor norm[5] = {x, c, c, c, c}, limit = shaped(DT_F32, 0, 0, 0, 0, 0);
    assert_int_equal(work(OP_BatchNormalization, norm, 5, x, true, none).params, 16);
    assert_int_equal(work(OP_BatchNormalization, norm, 5, x, true, none).weight_bytes, 128);
    assert_int_equal(work(OP_Clip, (Tensor[]){x, limit, limit}, 3, x, true, none).params, 0);
    Tensor scales[3] = {x, {0}, shaped(DT_F32, 1, 4, 0, 0, 0)};
    assert_int_equal(work(OP_Resize, scales, 3, x, true, none).params, 0);
    assert_int_equal(work(OP_Mul, (Tensor[]){x, limit}, 2, x, true, none).params, 0);
}

static void quantised_weights_count(void **state) {
    (void)state;
    Tensor s = shaped(DT_F32, 0, 0, 0, 0, 0), z = shaped(DT_U8, 0, 0, 0, 0, 0);
    Tensor x = shaped(DT_U8, 4, 1, 2, 4, 4), k = shaped(DT_I8, 4, 3, 2, 3, 3);
    Tensor in[9] = {x, s, z, k, s, z, s, z, shaped(DT_I32, 1, 3, 0, 0, 0)};
    Work   w = work(OP_QLinearConv, in, 9, shaped(DT_U8, 4, 1, 3, 2, 2), true, none);
    assert_int_equal(w.macs, 3 * 4 * 18);
    assert_int_equal(w.params, 54 + 3);
}

static void huge_shapes_saturate(void **state) {
    (void)state;
    Tensor in[2] = {shaped(DT_F32, 2, INT64_MAX, INT64_MAX, 0, 0),
                    shaped(DT_F32, 2, INT64_MAX, INT64_MAX, 0, 0)};
    Work   w = work(OP_MatMul, in, 2, in[0], true, none);
    assert_true(w.macs == INT64_MAX && w.params == INT64_MAX && w.in_bytes == INT64_MAX);
    Tensor unknown = {.dtype = DT_F32, .rank = RANK_UNKNOWN};
    w = work(OP_MatMul, (Tensor[]){unknown, unknown}, 2, unknown, true, none);
    assert_true(w.macs == 0 && w.params == 0 && w.out_bytes == 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grouped_convolution),
        cmocka_unit_test(transposed_convolution),
        cmocka_unit_test(matrix_products),
        cmocka_unit_test(recurrent_layers),
        cmocka_unit_test(einsum_multiplies_each_index_once),
        cmocka_unit_test(statistics_limits_and_scales_are_not_learned),
        cmocka_unit_test(quantised_weights_count),
        cmocka_unit_test(huge_shapes_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
