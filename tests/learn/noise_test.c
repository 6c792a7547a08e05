// Moments and limits of the noise.
#include "tests/learn/gradient.h"

#include "learn/noise.h"
#include "tests/runner.h"

enum { N = 200000 };

static void test_normal(void **state) {
    (void)state;
    Rng      rng = {1};
    double   sum[5] = {0};
    uint32_t within = 0;
    for (uint32_t i = 0; i < N; i++) {
        double x = (double)noise_normal(&rng), p = 1;
        for (uint32_t k = 0; k < 5; k++, p *= x) sum[k] += p / N;
        within += fabs(x) < 1;
    }
    assert_true(fabs(sum[1]) < 0.01 && fabs(sum[2] - 1) < 0.015);
    assert_true(fabs(sum[3]) < 0.04 && fabs(sum[4] - 3) < 0.1);
    assert_true(fabs((double)within / N - 0.6827) < 0.005);
}

static void test_added(void **state) {
    (void)state;
    Rng    rng = {2};
    float  a[4] = {0, 0.95f, -0.95f, 0.2f};
    double spread = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        float b[4];
        memcpy(b, a, sizeof b);
        noise_add(&rng, 0.2f, 4, b);
        for (uint32_t k = 0; k < 4; k++) assert_true(b[k] <= 1 && b[k] >= -1);
        spread += (double)(b[0] * b[0]) / 20000;
    }
    assert_true(fabs(sqrt(spread) - 0.2) < 0.005);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_normal), cmocka_unit_test(test_added)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
