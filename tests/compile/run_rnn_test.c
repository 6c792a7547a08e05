// An LSTM with int8 weights equals the float one, apart from the rounding of its inputs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tests/compile/call_run.h"
#include "tests/runner.h"

enum { T = 5, N = 1, I = 3, H = 4, G = 4 * H, D = 2 };

static const float  scales[D] = {0.02F, 0.03F};
static const int8_t zeros[D] = {3, -2};

typedef struct Weights {
    int8_t bytes[D * I * G], rec_bytes[D * H * G];
    float  plain[D * G * I], rec_plain[D * G * H];
} Weights;

static void make(Rng *r, int64_t rows, int8_t *bytes, float *plain) {
    for (int64_t d = 0; d < D; d++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < G; j++) {
                int8_t q = (int8_t)((int)rng_below(r, 80) - 40);
                bytes[(d * rows + i) * G + j] = q;
                plain[(d * G + j) * rows + i] = (float)(q - zeros[d]) * scales[d];
            }
}

static void begin(Call *c, OpId op, const float *x) {
    call_begin(c, op, op == OP_LSTM ? 14 : 1);
    call_in(c, DT_F32, SHAPE(T, N, I), x);
    call_str(c, "direction", "bidirectional");
    call_int(c, "hidden_size", H);
    c->node.n_out = 3;
}

static void bytes_stand_for_floats(void **state) {
    (void)state;
    Rng     r = {7};
    Weights w;
    float   x[T * N * I];
    for (int i = 0; i < T * N * I; i++) x[i] = 2 * rng_unit(&r) - 1;
    make(&r, I, w.bytes, w.plain);
    make(&r, H, w.rec_bytes, w.rec_plain);
    Call a, b;
    begin(&a, OP_LSTM, x);
    call_in(&a, DT_F32, SHAPE(D, G, I), w.plain);
    call_in(&a, DT_F32, SHAPE(D, G, H), w.rec_plain);
    assert_int_equal(call_run(&a), ERR_OK);
    begin(&b, OP_MsDynamicQuantizeLSTM, x);
    call_in(&b, DT_I8, SHAPE(D, I, G), w.bytes);
    call_in(&b, DT_I8, SHAPE(D, H, G), w.rec_bytes);
    for (int i = 0; i < 5; i++) call_skip(&b);
    call_in(&b, DT_F32, SHAPE(D), scales);
    call_in(&b, DT_I8, SHAPE(D), zeros);
    call_in(&b, DT_F32, SHAPE(D), scales);
    call_in(&b, DT_I8, SHAPE(D), zeros);
    assert_int_equal(call_run(&b), ERR_OK);
    for (int o = 0; o < 3; o++) {
        assert_true(tensor_same_shape(&a.out[o], &b.out[o]));
        bool same = true;
        for (int64_t i = 0; i < tensor_count(&a.out[o]); i++) {
            float p = ((float *)a.out[o].data)[i], q = ((float *)b.out[o].data)[i];
            assert_true(fabsf(p - q) < 0.02F);
            same = same && p == q;
        }
        assert_false(same);  // it does round
    }
    call_finish(&a);
    call_finish(&b);
}

static void scales_must_fit(void **state) {
    (void)state;
    static const float  x[T * N * I];
    static const int8_t w[D * I * G], rec[D * H * G];
    Call                c;
    begin(&c, OP_MsDynamicQuantizeLSTM, x);
    call_in(&c, DT_I8, SHAPE(D, I, G), w);
    call_in(&c, DT_I8, SHAPE(D, H, G), rec);
    assert_int_equal(call_infer(&c), ERR_INVALID);
    for (int i = 0; i < 5; i++) call_skip(&c);
    call_in(&c, DT_F32, SHAPE(1), scales);
    call_in(&c, DT_I8, SHAPE(D), zeros);
    call_in(&c, DT_F32, SHAPE(D), scales);
    call_in(&c, DT_I8, SHAPE(D), zeros);
    assert_int_equal(call_infer(&c), ERR_INVALID);
    assert_non_null(strstr(err_why(), "input 8"));
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_stand_for_floats),
                                       cmocka_unit_test(scales_must_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
