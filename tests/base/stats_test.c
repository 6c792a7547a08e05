#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "base/stats.h"
#include "tests/runner.h"

static void near(double got, double want, double within) {
    if (!(fabs(got - want) <= within)) fail_msg("%.12g is not %.12g", got, want);
}

static void test_percentiles(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    const double x[5] = {50, 15, 40, 20, 35};  // the textbook example of nearest rank
    double      *s;
    assert_int_equal(stats_sort(&a, x, 5, &s), ERR_OK);
    assert_true(x[0] == 50);
    assert_true(stats_percentile(s, 5, 5) == 15 && stats_percentile(s, 5, 30) == 20);
    assert_true(stats_percentile(s, 5, 40) == 20 && stats_percentile(s, 5, 50) == 35);
    assert_true(stats_percentile(s, 5, 100) == 50 && stats_percentile(s, 5, 0) == 15);
    assert_true(stats_percentile(s, 5, -5) == 15 && stats_percentile(s, 5, 200) == 50);
    assert_true(stats_percentile(s, 5, NAN) == 15);
    arena_finish(&a);
}

static void test_round_ranks(void **state) {
    (void)state;
    double x[1000];
    for (int i = 0; i < 1000; i++) x[i] = i + 1;
    assert_true(stats_percentile(x, 1000, 99.9) == 999);
    assert_true(stats_percentile(x, 1000, 99) == 990);
    assert_true(stats_percentile(x, 100, 95) == 95);
    for (int i = 1; i <= 1000; i++) assert_true(stats_percentile(x, 1000, i / 10.0) == i);
}

static void test_sort_puts_nan_last_and_reports_no_memory(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 4096), ERR_OK);
    const double x[4] = {NAN, 2, -INFINITY, 1};
    double      *s;
    assert_int_equal(stats_sort(&a, x, 4, &s), ERR_OK);
    assert_true(isinf(s[0]) && s[1] == 1 && s[2] == 2 && isnan(s[3]));
    assert_int_equal(stats_sort(&a, NULL, 0, &s), ERR_OK);
    assert_int_equal(stats_sort(&a, x, SIZE_MAX / 4, &s), ERR_LIMIT);
    arena_finish(&a);
}

static void test_t_quantiles(void **state) {
    (void)state;
    static const struct {
        double p, freedom, want, within;
    } table[] = {
        {0.975, 1, 12.706204736, 1e-8},  {0.975, 2, 4.302652730, 1e-9},
        {0.975, 3, 3.182446305, 1e-9},   {0.975, 4, 2.776445105, 1e-9},
        {0.975, 5, 2.570581836, 1e-9},   {0.975, 9, 2.262157163, 1e-9},
        {0.975, 10, 2.228138852, 1e-9},  {0.975, 29, 2.045229642, 1e-9},
        {0.975, 30, 2.042272456, 1e-9},  {0.975, 100, 1.983971519, 1e-9},
        {0.95, 1, 6.313751515, 1e-8},    {0.95, 10, 1.812461123, 1e-9},
        {0.99, 5, 3.364929999, 1e-9},    {0.995, 20, 2.845339710, 1e-9},
        {0.9995, 3, 12.923978637, 1e-7}, {0.975, 1e6, 1.959966, 1e-5},
        {0.75, 1, 1.0, 1e-12},  // the Cauchy distribution
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        near(stats_t_quantile(table[i].p, table[i].freedom), table[i].want, table[i].within);
        near(stats_t_quantile(1 - table[i].p, table[i].freedom), -table[i].want,
             100 * table[i].within);
    }
    assert_true(stats_t_quantile(0.5, 7) == 0);
}

static void test_mean(void **state) {
    (void)state;
    const double x[5] = {2, 4, 4, 4, 6};
    Mean         m = stats_mean(x, 5);
    near(m.mean, 4, 1e-12);
    near(m.sd, sqrt(2), 1e-12);
    near(m.half, 2.776445105 * sqrt(2.0 / 5), 1e-9);
    m = stats_mean(x, 1);
    assert_true(m.mean == 2 && m.sd == 0 && isinf(m.half));
    m = stats_mean(NULL, 0);
    assert_true(isnan(m.mean) && m.n == 0);
    const double same[3] = {7, 7, 7};
    m = stats_mean(same, 3);
    assert_true(m.mean == 7 && m.half == 0);
    double far[1000];  // a small spread far from zero: the naive sum of squares loses it all
    for (int i = 0; i < 1000; i++) far[i] = 1e12 + i % 2;
    near(stats_mean(far, 1000).sd, 0.50025, 1e-4);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_round_ranks),
        cmocka_unit_test(test_sort_puts_nan_last_and_reports_no_memory),
        cmocka_unit_test(test_t_quantiles),
        cmocka_unit_test(test_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
