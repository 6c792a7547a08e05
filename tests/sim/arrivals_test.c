#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim/arrivals.h"
#include "tests/runner.h"

enum { N = 200000 };

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 26) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Arrivals make(uint64_t seed, double rate, uint32_t n) {
    static const double share[] = {3, 0, 1};
    Arrivals            a;
    assert_int_equal(arrivals_poisson(&arena, (Rng){seed}, rate, share, 3, n, &a), ERR_OK);
    assert_int_equal(a.n, n);
    return a;
}

static void test_rate_and_shares(void **state) {
    (void)state;
    Arrivals a = make(1, 500, N);
    uint32_t of[3] = {0};
    for (uint32_t i = 0; i < a.n; i++) {
        assert_true(i == 0 || a.at[i].at >= a.at[i - 1].at);
        of[a.at[i].tenant]++;
    }
    double rate = N * 1e9 / (double)a.at[N - 1].at;
    assert_true(fabs(rate - 500) < 500 * 4 / sqrt(N));
    assert_int_equal(of[1], 0);
    assert_true(fabs(of[0] / (double)N - 0.75) < 4 * sqrt(0.75 * 0.25 / N));
}

// Poisson process: counts have variance = mean, gaps have deviation = mean.
static void test_is_poisson(void **state) {
    (void)state;
    Arrivals a = make(2, 1000, N);
    double   sum = 0, squares = 0, n = 0, count = 0;
    TimeNs   window = 20000000, end = window;
    for (uint32_t i = 0; i < a.n; i++) {
        for (; a.at[i].at >= end; end += window, n++, count = 0)
            sum += count, squares += count * count;
        count++;
    }
    double mean = sum / n, variance = squares / n - mean * mean;
    assert_true(fabs(mean - 20) < 0.3);
    assert_true(fabs(variance / mean - 1) < 0.1);
    uint32_t shorter = 0;  // than the mean: 1 - 1/e of them
    for (uint32_t i = 1; i < a.n; i++) shorter += a.at[i].at - a.at[i - 1].at < 1000000;
    assert_true(fabs(shorter / (double)N - (1 - exp(-1))) < 0.005);
}

static void test_seed_decides(void **state) {
    (void)state;
    Arrivals a = make(7, 100, 1000), b = make(7, 100, 1000), c = make(8, 100, 1000);
    for (uint32_t i = 0; i < a.n; i++) {
        assert_true(a.at[i].at == b.at[i].at);
        assert_int_equal(a.at[i].tenant, b.at[i].tenant);
    }
    assert_true(a.at[0].at != c.at[0].at);
    Arrivals fast = make(7, 200, 1000);  // another rate scales the same arrival times
    assert_true(llabs(2 * fast.at[999].at - a.at[999].at) < 10);
}

static void test_refuses_nonsense(void **state) {
    (void)state;
    static const double bad[] = {1, -1}, none[] = {0, 0}, good[] = {1, 1};
    Arrivals            a;
    assert_int_equal(arrivals_poisson(&arena, (Rng){1}, 0, good, 2, 5, &a), ERR_ARG);
    assert_int_equal(arrivals_poisson(&arena, (Rng){1}, NAN, good, 2, 5, &a), ERR_ARG);
    assert_int_equal(arrivals_poisson(&arena, (Rng){1}, 10, bad, 2, 5, &a), ERR_ARG);
    assert_non_null(strstr(err_why(), "tenant 1"));
    assert_int_equal(arrivals_poisson(&arena, (Rng){1}, 10, none, 2, 5, &a), ERR_ARG);
    assert_int_equal(arrivals_poisson(&arena, (Rng){1}, 1e-9, good, 2, 5000, &a), ERR_LIMIT);
}

// In bursts of 16 at 4 times the rate: the same mean rate, three quarters of the time idle, and
// counts with far more variance than Poisson.
static void test_bursts(void **state) {
    (void)state;
    static const double share[] = {3, 0, 1};
    Arrivals            a, again;
    Bursts              b = {4, 16};
    double              sum = 0, squares = 0, n = 0, count = 0;
    TimeNs              window = 20000000, end = window;
    uint32_t            of[3] = {0}, quick = 0;
    assert_int_equal(arrivals_bursty(&arena, (Rng){3}, 1000, b, share, 3, N, &a), ERR_OK);
    for (uint32_t i = 0; i < a.n; i++) {
        assert_true(i == 0 || a.at[i].at >= a.at[i - 1].at);
        of[a.at[i].tenant]++;
        quick += i > 0 && a.at[i].at - a.at[i - 1].at < 1000000;
        for (; a.at[i].at >= end; end += window, n++, count = 0)
            sum += count, squares += count * count;
        count++;
    }
    double mean = sum / n, rate = N * 1e9 / (double)a.at[N - 1].at;
    assert_true(fabs(rate - 1000) < 50 && fabs(mean - 20) < 1);
    assert_true((squares / n - mean * mean) / mean > 5);
    // within a burst 1 - 1/e^4 of the gaps are shorter than a millisecond
    assert_true(fabs(quick / (double)N - (1 - exp(-4)) * 15 / 16) < 0.02);
    assert_int_equal(of[1], 0);
    assert_true(fabs(of[0] / (double)N - 0.75) < 4 * sqrt(0.75 * 0.25 / N));
    assert_int_equal(arrivals_bursty(&arena, (Rng){3}, 1000, b, share, 3, 1000, &again), ERR_OK);
    for (uint32_t i = 0; i < again.n; i++) assert_true(a.at[i].at == again.at[i].at);
    assert_int_equal(arrivals_bursty(&arena, (Rng){3}, 10, (Bursts){1, 9}, share, 3, 5, &a),
                     ERR_ARG);
    assert_int_equal(arrivals_bursty(&arena, (Rng){3}, 10, (Bursts){2, 0}, share, 3, 5, &a),
                     ERR_ARG);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate_and_shares), cmocka_unit_test(test_is_poisson),
        cmocka_unit_test(test_seed_decides),    cmocka_unit_test(test_refuses_nonsense),
        cmocka_unit_test(test_bursts),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
