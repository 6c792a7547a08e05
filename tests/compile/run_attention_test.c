// Attention, KV caches, masks and rotary embeddings, computed by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/compile/call_run.h"
#include "tests/runner.h"

static void floats_are(const Tensor *t, const float *want, size_t n) {
    assert_int_equal(tensor_count(t), n);
    for (size_t i = 0; i < n; i++)
        assert_true(fabsf(((const float *)t->data)[i] - want[i]) < 1e-5F);
}

// Scores ln 3 and 0 have softmax 3/4 and 1/4.
static const float ln3 = 1.0986123F;

static void causal_with_cache(void **state) {
    (void)state;
    const float q[2] = {1, 1}, k[2] = {0, 5}, v[2] = {8, 100}, past_k[1] = {ln3}, past_v[1] = {4};
    Call        c;
    call_begin(&c, OP_Attention, 23);
    call_in(&c, DT_F32, SHAPE(1, 1, 2, 1), q);
    call_in(&c, DT_F32, SHAPE(1, 1, 2, 1), k);
    call_in(&c, DT_F32, SHAPE(1, 1, 2, 1), v);
    call_skip(&c);
    call_in(&c, DT_F32, SHAPE(1, 1, 1, 1), past_k);
    call_in(&c, DT_F32, SHAPE(1, 1, 1, 1), past_v);
    call_int(&c, "is_causal", 1);
    call_float(&c, "scale", 1);
    call_int(&c, "qk_matmul_output_mode", 3);
    c.node.n_out = 4;
    assert_int_equal(call_run(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[0], SHAPE(1, 1, 2, 1)));
    assert_true(fabsf(((const float *)c.out[0].data)[0] - 5) < 1e-5F);  // 3/4 of 4, 1/4 of 8
    floats_are(&c.out[1], (float[]){ln3, 0, 5}, 3);
    floats_are(&c.out[2], (float[]){4, 8, 100}, 3);
    assert_true(((const float *)c.out[3].data)[2] == 0);
    call_finish(&c);
}

static void packed_grouped_mask(void **state) {
    (void)state;
    const float q[4] = {1, 1, 1, 1}, k[2] = {ln3, 0}, v[2] = {4, 8};
    const bool  mask[2] = {true, false};
    Call        c;
    call_begin(&c, OP_Attention, 23);
    call_in(&c, DT_F32, SHAPE(1, 1, 4), q);
    call_in(&c, DT_F32, SHAPE(1, 2, 1), k);
    call_in(&c, DT_F32, SHAPE(1, 2, 1), v);
    call_int(&c, "q_num_heads", 4);
    call_int(&c, "kv_num_heads", 1);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){5, 5, 5, 5}, 4);
    call_in(&c, DT_BOOL, SHAPE(1, 2), mask);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){4, 4, 4, 4}, 4);
    c.tensors[3].dims[1] = 3;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    c.attrs[0].v.i = 3;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

// One head of one number; the weights make q 1 (by the bias), k x and v 4 x.
static void microsoft(void **state) {
    (void)state;
    const float   x[2] = {ln3, 0}, w[3] = {0, 1, 4}, bias[3] = {1, 0, 0};
    const int32_t lengths[1] = {1}, mask[2] = {0, 1};
    Call          c;
    call_begin(&c, OP_MsAttention, 1);
    call_in(&c, DT_F32, SHAPE(1, 2, 1), x);
    call_in(&c, DT_F32, SHAPE(1, 3), w);
    call_in(&c, DT_F32, SHAPE(3), bias);
    call_int(&c, "num_heads", 1);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){3 * ln3, 3 * ln3}, 2);
    call_in(&c, DT_I32, SHAPE(1), lengths);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){4 * ln3, 4 * ln3}, 2);
    c.tensors[3] = tensor_of(DT_I32, SHAPE(1, 2), (void *)(uintptr_t)mask);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){0, 0}, 2);
    c.node.n_in = 3;
    call_int(&c, "unidirectional", 1);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){4 * ln3, 3 * ln3}, 2);
    c.attrs[0].v.i = 2;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void rotary(void **state) {
    (void)state;
    const float x[4] = {1, 2, 3, 4}, cosines[4] = {1, 1, 0, 0}, sines[4] = {0, 0, 1, 1};
    int64_t     id = 1;
    Call        c;
    call_begin(&c, OP_RotaryEmbedding, 23);
    call_in(&c, DT_F32, SHAPE(1, 1, 1, 4), x);
    call_in(&c, DT_F32, SHAPE(2, 2), cosines);
    call_in(&c, DT_F32, SHAPE(2, 2), sines);
    call_in(&c, DT_I64, SHAPE(1, 1), &id);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){-3, -4, 1, 2}, 4);  // a quarter turn of (1, 3) and (2, 4)
    call_int(&c, "interleaved", 1);
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){-2, 1, -4, 3}, 4);
    id = 2;
    assert_int_equal(call_run(&c), ERR_INVALID);
    call_finish(&c);
}

static void embed_norm(void **state) {
    (void)state;
    int32_t     ids[2] = {1, 0};
    const float words[4] = {0, 0, 1, 3}, plan[4] = {0, 0, 5, 1}, gamma[2] = {1, 2},
                beta[2] = {10, 20};
    Call c;
    call_begin(&c, OP_MsEmbedLayerNorm, 1);
    call_in(&c, DT_I32, SHAPE(1, 2), ids);
    call_skip(&c);
    call_in(&c, DT_F32, SHAPE(2, 2), words);
    call_in(&c, DT_F32, SHAPE(2, 2), plan);
    call_skip(&c);
    call_in(&c, DT_F32, SHAPE(2), gamma);
    assert_int_equal(call_infer(&c), ERR_INVALID);  // beta is missing
    call_in(&c, DT_F32, SHAPE(2), beta);
    c.node.n_out = 2;
    assert_int_equal(call_run(&c), ERR_OK);
    floats_are(&c.out[0], (float[]){9, 22, 11, 18}, 4);
    ids[1] = 2;
    assert_int_equal(call_run(&c), ERR_INVALID);
    call_finish(&c);
}

// A sequence longer than its cache, or shorter than its new positions, fails the run.
static void group_lengths_are_checked(void **state) {
    (void)state;
    const float q[2] = {1, 1}, kv[1] = {1}, past[3] = {0};
    int32_t     length[1] = {3}, total[1] = {4};
    Call        c;
    call_begin(&c, OP_MsGroupQueryAttention, 1);
    call_in(&c, DT_F32, SHAPE(1, 1, 2), q);
    call_in(&c, DT_F32, SHAPE(1, 1, 1), kv);
    call_in(&c, DT_F32, SHAPE(1, 1, 1), kv);
    call_in(&c, DT_F32, SHAPE(1, 1, 3, 1), past);
    call_in(&c, DT_F32, SHAPE(1, 1, 3, 1), past);
    call_in(&c, DT_I32, SHAPE(1), length);
    call_in(&c, DT_I32, SHAPE(1), total);
    call_int(&c, "num_heads", 2);
    call_int(&c, "kv_num_heads", 1);
    c.node.n_out = 3;
    assert_int_equal(call_run(&c), ERR_OK);
    assert_true(call_shape_is(&c.out[1], SHAPE(1, 1, 4, 1)));
    static const int32_t bad[] = {4, -1, -2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        length[0] = bad[i];
        assert_int_equal(call_run(&c), ERR_INVALID);
        assert_non_null(strstr(err_why(), "seqlens_k"));
    }
    total[0] = 0;
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

// What the kernels do not know is rejected by name.
static void unsupported_is_named(void **state) {
    (void)state;
    const float   x[16] = {0}, scale[1] = {1};
    const uint8_t w[8] = {0};
    const int32_t order[16] = {0};
    Call          c;
    call_begin(&c, OP_MsMatMulNBits, 1);
    call_in(&c, DT_F32, SHAPE(1, 16), x);
    call_in(&c, DT_U8, SHAPE(1, 1, 8), w);
    call_in(&c, DT_F32, SHAPE(1, 1), scale);
    call_int(&c, "N", 1);
    call_int(&c, "K", 16);
    call_int(&c, "block_size", 16);
    assert_int_equal(call_run(&c), ERR_OK);
    call_skip(&c);
    call_in(&c, DT_I32, SHAPE(16), order);
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
    assert_non_null(strstr(err_why(), "g_idx"));
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_with_cache),
        cmocka_unit_test(packed_grouped_mask),
        cmocka_unit_test(microsoft),
        cmocka_unit_test(rotary),
        cmocka_unit_test(embed_norm),
        cmocka_unit_test(group_lengths_are_checked),
        cmocka_unit_test(unsupported_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
