// Activations against libm, their gradients, and softmax over parts of rows.
#include "tests/learn/gradient.h"

#include "learn/activation.h"
#include "tests/runner.h"

static void test_true_to_libm(void **state) {
    (void)state;
    for (int32_t i = -400000; i <= 400000; i++) {
        float  x = (float)i * 2.5e-4f;
        double d = (double)x, e = exp(d < -87 ? -87 : d > 87 ? 87 : d);
        assert_true(fabs((double)repro_exp(x) - e) <= 2e-7 * e);
        assert_true(fabs((double)repro_sigmoid(x) - 1 / (1 + exp(-d))) < 2e-7);
        assert_true(fabs((double)repro_tanh(x) - tanh(d)) <= 3e-7 * fabs(tanh(d)));
        if (i > 0) assert_true(fabs((double)repro_log(x) - log(d)) < 3e-7 * (1 + fabs(log(d))));
    }
    for (float x = 2e-38f; x < 1e38f; x *= 1.37f)
        assert_true(fabs((double)repro_log(x) - log((double)x)) <
                    2e-7 * fabs(log((double)x)) + 1e-7);
    assert_true(isnan(repro_exp(NAN)) && isnan(repro_tanh(NAN)) && isnan(repro_sigmoid(NAN)));
    assert_true(repro_tanh(1e30f) == 1 && repro_tanh(-1e30f) == -1 && repro_sigmoid(1e30f) == 1);
    assert_true(repro_tanh(-0.0f) == 0 && repro_exp(0) == 1);
}

static double truth(Activation act, double x) {
    switch (act) {
    case ACTIVATION_NONE: return x;
    case ACTIVATION_RELU: return x > 0 ? x : 0;
    case ACTIVATION_TANH: return tanh(x);
    case ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
    case ACTIVATION_SOFTPLUS: return log1p(exp(x));
    }
    return NAN;
}

// Lengths that are no multiple of a vector, and in place.
static void test_forward_and_backward(void **state) {
    (void)state;
    Rng rng = {1};
    for (uint32_t act = ACTIVATION_NONE; act <= ACTIVATION_SOFTPLUS; act++)
        for (size_t n = 1; n < 40; n++) {
            float x[40], y[40], dy[40], dx[40];
            gradient_fill(&rng, x, n, 6);
            gradient_fill(&rng, dy, n, 2);
            activation_forward((Activation)act, n, x, y);
            activation_backward((Activation)act, n, y, dy, dx);
            for (size_t i = 0; i < n; i++) {
                double d = (double)x[i], slope = (truth((Activation)act, d + 1e-6) -
                                                  truth((Activation)act, d - 1e-6)) /
                                                 2e-6;
                assert_float_equal(y[i], truth((Activation)act, d), 2e-6);
                assert_float_equal(dx[i], (float)slope * dy[i], 1e-5);
            }
            activation_forward((Activation)act, n, x, x);
            assert_memory_equal(x, y, n * sizeof *x);
            activation_backward((Activation)act, n, y, dy, dy);
            assert_memory_equal(dy, dx, n * sizeof *dx);
        }
}

enum { ROWS = 4, COLS = 7 };
typedef struct Soft {
    float           x[ROWS * COLS], y[ROWS * COLS], pull[ROWS * COLS];
    const uint32_t *len;
} Soft;

static double soft_loss(void *ctx) {
    Soft  *s = ctx;
    double sum = 0;
    activation_softmax(ROWS, COLS, s->len, s->x, s->y);
    for (size_t i = 0; i < ROWS * COLS; i++) sum += (double)s->y[i] * (double)s->pull[i];
    return sum;
}

static void test_softmax(void **state) {
    (void)state;
    static const uint32_t len[ROWS] = {7, 1, 0, 4};
    Soft                  s = {.len = len};
    Rng                   rng = {2};
    float                 dx[ROWS * COLS];
    gradient_fill(&rng, s.x, ROWS * COLS, 3);
    gradient_fill(&rng, s.pull, ROWS * COLS, 1);
    soft_loss(&s);
    for (uint32_t r = 0; r < ROWS; r++) {
        double sum = 0;
        for (uint32_t i = 0; i < COLS; i++) {
            sum += (double)s.y[r * COLS + i];
            if (i >= len[r]) assert_true(s.y[r * COLS + i] == 0);
        }
        assert_float_equal(sum, len[r] > 0 ? 1 : 0, 1e-6);
    }
    activation_softmax_backward(ROWS, COLS, s.y, s.pull, dx);
    gradient_check("softmax", soft_loss, &s, s.x, dx, ROWS * COLS, ROWS * COLS, &rng);
    for (uint32_t i = 0; i < COLS; i++) s.x[i] += 1000;  // softmax depends on differences only
    float before = s.y[2];
    s.len = NULL;
    soft_loss(&s);
    assert_float_equal(s.y[2], before, 1e-4);
}

// One row after the other, in the order of the definition.
static void obvious_softmax(size_t n, size_t cols, const float *x, float *y) {
    float most = n > 0 ? x[0] : 0, sum = 0;
    for (size_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n; i++) y[i] = repro_exp(x[i] - most);
    for (size_t i = 0; i < n; i++) sum += y[i];
    for (size_t i = 0; i < cols; i++) y[i] = i < n ? y[i] / sum : 0;
}

enum { WIDE_ROWS = 37, WIDE_COLS = 45 };

// Rows side by side, of equal and of different lengths, in place: the same bits.
static void test_softmax_equals_the_obvious_one(void **state) {
    (void)state;
    static float x[WIDE_ROWS * WIDE_COLS], y[WIDE_ROWS * WIDE_COLS];
    Rng          rng = {3};
    for (uint32_t round = 0; round < 200; round++) {
        size_t   rows = 1 + rng_below(&rng, WIDE_ROWS), cols = 1 + rng_below(&rng, WIDE_COLS);
        uint32_t len[WIDE_ROWS];
        for (size_t r = 0; r < rows; r++)
            len[r] = (uint32_t)(rng_below(&rng, 4) > 0 ? cols / 2 : rng_below(&rng, cols + 1));
        gradient_fill(&rng, x, rows * cols, 20);
        for (size_t r = 0; r < rows; r++)
            obvious_softmax(round % 2 ? len[r] : cols, cols, x + r * cols, y + r * cols);
        activation_softmax(rows, cols, round % 2 ? len : NULL, x, x);
        assert_memory_equal(x, y, rows * cols * sizeof *x);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_true_to_libm), cmocka_unit_test(test_forward_and_backward),
        cmocka_unit_test(test_softmax), cmocka_unit_test(test_softmax_equals_the_obvious_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
