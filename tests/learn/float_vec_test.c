// FloatVec operations, and Adam against its formulas in double precision.
#include "tests/learn/gradient.h"

#include "learn/adam.h"
#include "tests/runner.h"

enum { N = 37 };

static void test_block(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, (size_t)1 << 20), ERR_OK);
    FloatVec x = float_vec_new(&a, 4), y = float_vec_new(&a, 4);
    memcpy(x.at, ((float[]){3, 0, 4, 0}), 16);
    assert_true(float_vec_norm(x) == 5);
    assert_true(float_vec_clip(x, 6) == 5 && x.at[2] == 4);
    assert_true(float_vec_clip(x, 1) == 5);
    assert_float_equal(x.at[0], 0.6, 1e-6);
    assert_float_equal(float_vec_norm(x), 1, 1e-6);
    float_vec_copy(y, x);
    assert_memory_equal(y.at, x.at, 16);
    float_vec_zero(y);
    float_vec_blend(y, x, 0.25f);
    assert_float_equal(y.at[2], 0.2, 1e-6);
    float_vec_add(y, x);
    assert_float_equal(y.at[2], 1.0, 1e-6);
    float_vec_scale(y, 2);
    assert_float_equal(y.at[2], 2.0, 1e-6);
    FloatVec part = float_vec_part(y, 2, 2);
    assert_true(part.at == y.at + 2 && part.n == 2 && float_vec_finite(y));
    y.at[3] = NAN;
    assert_false(float_vec_finite(y));
    y.at[3] = INFINITY;
    assert_false(float_vec_finite(y));
    arena_finish(&a);
}

static void test_adam(void **state) {
    (void)state;
    Rng         rng = {4};
    float       w[N], g[N], m[N] = {0}, v[N] = {0};
    double      dw[N], dm[N] = {0}, dv[N] = {0};
    AdamOptions o = {.rate = 0.01f, .beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 1e-6f, .decay = 0.1f};
    gradient_fill(&rng, w, N, 1);
    for (uint32_t i = 0; i < N; i++) dw[i] = (double)w[i];
    for (uint64_t step = 1; step <= 50; step++) {
        gradient_fill(&rng, g, N, 2);
        adam_step(&o, step, (FloatVec){w, N}, (FloatVec){g, N}, (FloatVec){m, N}, (FloatVec){v, N});
        for (uint32_t i = 0; i < N; i++) {
            double d = (double)g[i], b1 = (double)o.beta1, b2 = (double)o.beta2;
            dm[i] = b1 * dm[i] + (1 - b1) * d;
            dv[i] = b2 * dv[i] + (1 - b2) * d * d;
            double up = dm[i] / (1 - pow(b1, (double)step));
            double down = sqrt(dv[i] / (1 - pow(b2, (double)step))) + (double)o.epsilon;
            dw[i] = dw[i] * (1 - (double)o.rate * (double)o.decay) - (double)o.rate * up / down;
            assert_float_equal(w[i], dw[i], 1e-5);
        }
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_block), cmocka_unit_test(test_adam)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
