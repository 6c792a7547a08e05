// Recurrent layers against their equations, for one hidden unit and few steps.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "kernel/ref/ref_rnn.h"
#include "tests/runner.h"

enum { STEPS = 3, BATCH = 2 };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void near(float have, double want) { assert_true(fabs((double)have - want) < 1e-6); }

static float x[STEPS * BATCH] = {0.5F, -1, 0.25F, 2, -0.75F, 1};  // [t, n, 1]

// With one hidden unit every tensor is a list; the kernel does not check shapes.
static Tensor list(DType t, int64_t n, void *data) { return tensor_of(t, 1, &n, data); }

static RefRnn layer(RefRnnKind kind, int32_t gates) {
    RefGate s = {REF_GATE_SIGMOID, 0, 0}, t = {REF_GATE_TANH, 0, 0};
    RefRnn  p = {.kind = kind, .steps = STEPS, .batch = BATCH, .input = 1, .hidden = 1};
    p.gates = gates;
    p.directions = 1;
    for (int d = 0; d < 2; d++) {
        p.gate[d][0] = kind == REF_RNN ? t : s;
        p.gate[d][1] = p.gate[d][2] = t;
    }
    return p;
}

static Err run(RefRnn *p) {
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    Err e = ref_rnn(p, &a);
    arena_finish(&a);
    return e;
}

static void lstm_with_everything(void **state) {
    (void)state;
    float   w[4] = {0.3F, -0.2F, 0.5F, 0.9F}, r[4] = {0.1F, 0.4F, -0.6F, 0.7F};
    float   b[8] = {0.1F, 0.2F, 0.3F, 0.4F, -0.1F, 0.05F, 0, 0.25F}, peep[3] = {0.2F, 0.3F, -0.4F};
    float   h0[2] = {0.5F, -0.5F}, c0[2] = {1, -1}, y[STEPS * BATCH] = {0}, yh[2], yc[2];
    int32_t lens[2] = {3, 2};
    Tensor  tx = list(DT_F32, 6, x), tw = list(DT_F32, 4, w), tr = list(DT_F32, 4, r);
    Tensor  tb = list(DT_F32, 8, b), tp = list(DT_F32, 3, peep), tl = list(DT_I32, 2, lens);
    Tensor  th = list(DT_F32, 2, h0), tc = list(DT_F32, 2, c0);
    Tensor  ty = list(DT_F32, 6, y), tyh = list(DT_F32, 2, yh), tyc = list(DT_F32, 2, yc);
    RefRnn  p = layer(REF_LSTM, 4);
    p.x = &tx, p.w = &tw, p.r = &tr, p.b = &tb, p.lens = &tl, p.h0 = &th, p.c0 = &tc, p.p = &tp;
    p.y = &ty, p.yh = &tyh, p.yc = &tyc;
    for (int reversed = 0; reversed < 2; reversed++) {
        p.reversed = reversed != 0;
        memset(y, 0, sizeof y);
        assert_int_equal(run(&p), ERR_OK);
        for (int n = 0; n < BATCH; n++) {
            double h = (double)h0[n], c = (double)c0[n], pre[4];
            for (int k = 0; k < lens[n]; k++) {
                int t = reversed ? lens[n] - 1 - k : k;
                for (int g = 0; g < 4; g++)
                    pre[g] = (double)x[t * BATCH + n] * (double)w[g] + h * (double)r[g] +
                             (double)b[g] + (double)b[4 + g];
                double i = sigmoid(pre[0] + (double)peep[0] * c);
                double f = sigmoid(pre[2] + (double)peep[2] * c);
                c = f * c + i * tanh(pre[3]);
                h = sigmoid(pre[1] + (double)peep[1] * c) * tanh(c);
                near(y[t * BATCH + n], h);
            }
            near(yh[n], h);
            near(yc[n], c);
        }
        assert_true(y[2 * BATCH + 1] == 0);  // after the end of the short sequence
    }
}

static void gru(bool linear_before_reset) {
    float  w[3] = {0.3F, -0.2F, 0.5F}, r[3] = {0.1F, 0.4F, -0.6F}, y[6], yh[2];
    float  b[6] = {0.1F, 0.2F, 0.3F, 0.4F, -0.1F, 0.05F};
    Tensor tx = list(DT_F32, 6, x), tw = list(DT_F32, 3, w), tr = list(DT_F32, 3, r);
    Tensor tb = list(DT_F32, 6, b), ty = list(DT_F32, 6, y), tyh = list(DT_F32, 2, yh);
    RefRnn p = layer(REF_GRU, 3);
    p.linear_before_reset = linear_before_reset;
    p.x = &tx, p.w = &tw, p.r = &tr, p.b = &tb, p.y = &ty, p.yh = &tyh;
    assert_int_equal(run(&p), ERR_OK);
    for (int n = 0; n < BATCH; n++) {
        double h = 0;
        for (int t = 0; t < STEPS; t++) {
            double v = (double)x[t * BATCH + n], wh = v * (double)w[2] + (double)b[2];
            double z = sigmoid(v * (double)w[0] + h * (double)r[0] + (double)b[0] + (double)b[3]);
            double s = sigmoid(v * (double)w[1] + h * (double)r[1] + (double)b[1] + (double)b[4]);
            double g = linear_before_reset ? tanh(wh + s * (h * (double)r[2] + (double)b[5]))
                                           : tanh(wh + s * h * (double)r[2] + (double)b[5]);
            h = (1 - z) * g + z * h;
            near(y[t * BATCH + n], h);
        }
        near(yh[n], h);
    }
}

static void gru_both_ways(void **state) {
    (void)state;
    gru(false);
    gru(true);
}

// Two directions in batch-first layout: y [n, t, d, h], states [n, d, h].
static void rnn_bidirectional(void **state) {
    (void)state;
    float  w[2] = {1, 2}, r[2] = {0.5F, -0.5F}, y[12], yh[4];
    float  xb[6] = {x[0], x[2], x[4], x[1], x[3], x[5]};
    Tensor tx = list(DT_F32, 6, xb), tw = list(DT_F32, 2, w), tr = list(DT_F32, 2, r);
    Tensor ty = list(DT_F32, 12, y), tyh = list(DT_F32, 4, yh);
    RefRnn p = layer(REF_RNN, 1);
    p.directions = 2;
    p.batch_first = true;
    p.clip = 0.5;
    p.gate[1][0] = (RefGate){REF_GATE_AFFINE, 2, 1};
    p.x = &tx, p.w = &tw, p.r = &tr, p.y = &ty, p.yh = &tyh;
    assert_int_equal(run(&p), ERR_OK);
    for (int n = 0; n < BATCH; n++)
        for (int d = 0; d < 2; d++) {
            double h = 0;
            for (int k = 0; k < STEPS; k++) {
                int    t = d == 1 ? STEPS - 1 - k : k;
                double v = (double)xb[n * STEPS + t] * (double)w[d] + h * (double)r[d];
                v = fmin(fmax(v, -0.5), 0.5);
                h = d == 1 ? 2 * v + 1 : tanh(v);
                near(y[(n * STEPS + t) * 2 + d], h);
            }
            near(yh[n * 2 + d], h);
        }
}

static void wrong_lengths(void **state) {
    (void)state;
    float   w[1] = {1};
    int32_t lens[2] = {1, 4};
    Tensor  tx = list(DT_F32, 6, x), tw = list(DT_F32, 1, w), tl = list(DT_I32, 2, lens);
    RefRnn  p = layer(REF_RNN, 1);
    p.x = &tx, p.w = &tw, p.r = &tw, p.lens = &tl;
    assert_int_equal(run(&p), ERR_INVALID);
    lens[1] = -1;
    assert_int_equal(run(&p), ERR_INVALID);
    lens[1] = 0;
    assert_int_equal(run(&p), ERR_OK);
}

static void activations(void **state) {
    (void)state;
    static const struct {
        RefGate g;
        double  x, y;
    } rows[] = {
        {{REF_GATE_RELU, 0, 0}, -1, 0},
        {{REF_GATE_AFFINE, 2, 3}, 4, 11},
        {{REF_GATE_LEAKY_RELU, 0.1, 0}, -2, -0.2},
        {{REF_GATE_THRESHOLDED_RELU, 1, 0}, 0.5, 0},
        {{REF_GATE_THRESHOLDED_RELU, 1, 0}, 1.5, 1.5},
        {{REF_GATE_SCALED_TANH, 2, 0.5}, 1, 0.92423431452},
        {{REF_GATE_HARD_SIGMOID, 0.2, 0.5}, 1, 0.7},
        {{REF_GATE_HARD_SIGMOID, 0.2, 0.5}, 9, 1},
        {{REF_GATE_ELU, 2, 0}, -1, -1.26424111766},
        {{REF_GATE_SOFTSIGN, 0, 0}, -3, -0.75},
        {{REF_GATE_SOFTPLUS, 0, 0}, 0, 0.69314718056},
        {{REF_GATE_SOFTPLUS, 0, 0}, 1000, 1000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_true(fabs(ref_gate(&rows[i].g, rows[i].x) - rows[i].y) < 1e-9);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm_with_everything), cmocka_unit_test(gru_both_ways),
        cmocka_unit_test(rnn_bidirectional),    cmocka_unit_test(wrong_lengths),
        cmocka_unit_test(activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
