#include <pthread.h>
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

#include "base/hist.h"
#include "base/rng.h"
#include "base/stats.h"
#include "tests/runner.h"

static Hist h;

static void clear(void) { memset(&h, 0, sizeof h); }

static int setup(void **state) {
    (void)state;
    clear();
    return 0;
}

static void test_empty(void **state) {
    (void)state;
    assert_int_equal(hist_count(&h), 0);
    assert_int_equal(hist_min(&h) | hist_max(&h) | hist_percentile(&h, 50), 0);
}

// A single value is returned within 1 %, wherever it is in its bucket.
static void test_every_magnitude(void **state) {
    (void)state;
    Rng r = {3};
    for (int bits = 0; bits < 63; bits++)
        for (int i = 0; i < 200; i++) {
            uint64_t base = UINT64_C(1) << bits;
            int64_t  v = (int64_t)(i < 2 ? base - 1 + (uint64_t)i : base + rng_below(&r, base));
            clear();
            hist_record(&h, v / 4);
            hist_record(&h, v);
            hist_record(&h, INT64_MAX);
            assert_true(fabs((double)(hist_percentile(&h, 50) - v)) <= 0.01 * (double)v);
            assert_int_equal(hist_min(&h), v / 4);
            assert_true(hist_max(&h) == INT64_MAX);
        }
}

static void test_small_values_are_exact(void **state) {
    (void)state;
    for (int64_t v = 0; v < 128; v++) {
        clear();
        hist_record(&h, 0);
        hist_record(&h, v);
        hist_record(&h, 1000);
        assert_int_equal(hist_percentile(&h, 50), v);
    }
    clear();
    hist_record(&h, -5);
    hist_record(&h, INT64_MIN);
    assert_int_equal(hist_max(&h), 0);
    assert_int_equal(hist_count(&h), 2);
}

// Against exact percentiles of the same numbers.
static void test_against_exact(void **state) {
    (void)state;
    enum { N = 20000 };
    static double x[N];
    Arena         a;
    Rng           r = {17};
    double        sum = 0, *sorted;
    for (int i = 0; i < N; i++) {
        TimeNs v = (TimeNs)(exp(4 * rng_normal(&r)) * 1e6);
        x[i] = (double)v;
        sum += x[i];
        hist_record(&h, v);
    }
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(stats_sort(&a, x, N, &sorted), ERR_OK);
    assert_int_equal(hist_count(&h), N);
    assert_true(fabs(hist_sum(&h) - sum) <= 1e-9 * sum);
    assert_true((double)hist_min(&h) == sorted[0] && (double)hist_max(&h) == sorted[N - 1]);
    for (double p = 0; p <= 100; p += 0.25) {
        double want = stats_percentile(sorted, N, p);
        assert_true(fabs((double)hist_percentile(&h, p) - want) <= 0.01 * want + 0.5);
    }
    arena_finish(&a);
}

enum { RECORDS = 200000 };

static void *record_many(void *hist) {
    for (int i = 0; i < RECORDS; i++) hist_record(hist, 1000 + i % 100);
    return NULL;
}

// A concurrent reader sees recorded values only, and all of them in the end.
static void test_read_while_written(void **state) {
    (void)state;
    static Hist shared;
    pthread_t   writer;
    uint64_t    n = 0;
    assert_int_equal(pthread_create(&writer, NULL, record_many, &shared), 0);
    while (n < RECORDS) {
        uint64_t before = n;
        n = hist_count(&shared);
        assert_true(n >= before);
        TimeNs median = hist_percentile(&shared, 50);
        assert_true(n == 0 || (median >= 1000 && median < 1100));
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_empty, setup),
        cmocka_unit_test_setup(test_every_magnitude, setup),
        cmocka_unit_test_setup(test_small_values_are_exact, setup),
        cmocka_unit_test_setup(test_against_exact, setup),
        cmocka_unit_test_setup(test_read_while_written, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
