#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/rng.h"
#include "compile/tune/pareto.h"
#include "tests/runner.h"

enum { MB = 1 << 20, MANY = 300 };

static const Pressure machine = {
    .l3_bytes = 16 * MB, .l3_one = 80, .l3_all = 160, .dram_one = 35, .dram_all = 70};

static Candidate make(TimeNs time, uint32_t tasks, size_t l3_mb, size_t moved_mb) {
    return (Candidate){
        .tasks = tasks, .traffic = {l3_mb * MB, moved_mb * MB}, .time_ns = {time, time / 2}};
}

static LayerProfile profile(Candidate *c, uint32_t n, uint32_t n_counts) {
    return (LayerProfile){.n_counts = n_counts, .counts = {1, 2}, .n = n, .candidates = c};
}

static bool has(const uint32_t *set, uint32_t n, uint32_t one) {
    for (uint32_t i = 0; i < n; i++)
        if (set[i] == one) return true;
    return false;
}

static void test_front(void **state) {
    (void)state;
    Candidate c[] = {
        make(1000000, 8, 8, 4),   // fastest, large
        make(1200000, 8, 2, 4),   // smaller
        make(1300000, 8, 2, 5),   // dominated by the one before
        make(1250000, 64, 4, 4),  // more tasks
        make(1010000, 8, 4, 4),   // as fast as the first within the noise, smaller: dominates it
        make(1600000, 99, 0, 0),  // beyond the slowdown limit
        make(0, 99, 0, 0),        // not measured
    };
    LayerProfile p = profile(c, 7, 1);
    uint32_t     out[7], n = pareto_front(&p, out);
    assert_int_equal(n, 3);
    assert_int_equal(out[0], 3);  // same L3 and bytes as 4, came first
    assert_int_equal(out[1], 4);
    assert_int_equal(out[2], 1);
}

static void test_equals(void **state) {
    (void)state;
    Candidate    c[] = {make(1000, 8, 1, 1), make(990, 8, 1, 1), make(990, 8, 1, 1)};
    LayerProfile p = profile(c, 3, 2);
    uint32_t     out[3];
    assert_int_equal(pareto_front(&p, out), 1);
    assert_int_equal(out[0], 1);
    p = profile(c, 0, 2);
    assert_int_equal(pareto_front(&p, out), 0);
    assert_true(pareto_keep(&p, &machine, out) == 0 && p.n_kept == 0);
    p = profile(c, 3, 0);
    assert_int_equal(pareto_front(&p, out), 0);
}

// Fast on one core and fast on two cores are separate criteria.
static void test_counts(void **state) {
    (void)state;
    Candidate c[] = {make(1000000, 1, 1, 1), make(1200000, 1, 1, 1)};
    c[0].time_ns[1] = 700000;
    c[1].time_ns[1] = 600000;
    LayerProfile p = profile(c, 2, 2);
    uint32_t     out[2];
    assert_int_equal(pareto_front(&p, out), 2);
    (void)pareto_keep(&p, &machine, out);
    assert_int_equal(p.n_kept, 2);
    assert_int_equal(p.kept[0], 0);  // never more than 1.17 times the fastest; the other 1.2
}

static double time_at(const Candidate *c, uint32_t k, uint32_t cores, uint32_t level) {
    return pressure_time(&machine, c, k, cores, pressure_share(level));
}

static void test_levels(void **state) {
    (void)state;
    assert_true(pressure_share(0).l3 == 1 && pressure_share(9).l3 == 0);
    assert_true(pressure_share(0).dram == 1 && pressure_share(2).dram == 0.5);
    Candidate big = make(1000000, 8, 12, 12), small = make(1100000, 8, 0, 6);
    for (uint32_t level = 1; level < PRESSURE_LEVELS; level++)
        assert_true(time_at(&big, 0, 1, level) >= time_at(&big, 0, 1, level - 1));
    assert_true(time_at(&big, 0, 1, 0) == 1e6);
    assert_true(time_at(&small, 0, 1, 9) == 1.1e6);
    // Nothing is left of the L3: 12 MB at 70 GB/s times 2^-4.5.
    double expected = 12.0 * MB / (70 * pow(0.5, 4.5));
    assert_true(fabs(time_at(&big, 0, 1, 9) / expected - 1) < 1e-9);
    assert_true(time_at(&big, 1, 2, 9) == time_at(&big, 0, 1, 9));
}

// The best version changes with the interference level, from large to small footprint.
static void test_keep(void **state) {
    (void)state;
    Candidate c[] = {
        make(1000000, 8, 15, 30), make(1050000, 16, 10, 20), make(1100000, 16, 6, 14),
        make(1200000, 32, 3, 9),  make(1300000, 32, 1, 6),   make(1450000, 64, 0, 4),
    };
    LayerProfile p = profile(c, 6, 2);
    uint32_t     front[6], n = pareto_front(&p, front);
    assert_int_equal(n, 6);
    double loss = pareto_keep(&p, &machine, front);
    assert_in_range(p.n_kept, 2, PROFILE_KEPT);
    assert_int_equal(p.kept[0], 0);
    assert_true(has(p.kept, p.n_kept, 5));
    assert_true(loss <= PARETO_LOSS);
    assert_true(fabs(loss - pareto_loss(&p, &machine, front, n, p.kept, p.n_kept)) < 1e-12);
}

// No loss to reduce, but versions with more tasks and with less traffic are kept.
static void test_different(void **state) {
    (void)state;
    Candidate    c[] = {make(1000000, 8, 0, 8), make(1100000, 9, 0, 7), make(1200000, 32, 0, 8),
                        make(1300000, 40, 0, 8), make(1400000, 8, 0, 4)};
    LayerProfile p = profile(c, 5, 1);
    uint32_t     front[5];
    assert_int_equal(pareto_front(&p, front), 5);
    assert_true(pareto_keep(&p, &machine, front) <= PARETO_LOSS);
    assert_int_equal(p.n_kept, 3);
    assert_int_equal(p.kept[0], 0);
    assert_int_equal(p.kept[1], 4);
    assert_int_equal(p.kept[2], 2);
}

static void test_random(void **state) {
    (void)state;
    static Candidate c[MANY];
    Rng              r = {7};
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < MANY; i++)
            c[i] = make((TimeNs)(1000000 + rng_below(&r, 900000)), (uint32_t)rng_below(&r, 64),
                        rng_below(&r, 16), rng_below(&r, 40));
        LayerProfile p = profile(c, MANY, 2);
        uint32_t     front[MANY], n = pareto_front(&p, front);
        assert_true(n > 0);
        for (uint32_t i = 1; i < n; i++)
            assert_true(c[front[i - 1]].traffic.l3_bytes >= c[front[i]].traffic.l3_bytes);
        double loss = pareto_keep(&p, &machine, front);
        assert_in_range(p.n_kept, 1, PROFILE_KEPT);
        assert_true(loss <= PARETO_LOSS || p.n_kept == PROFILE_KEPT);
        for (uint32_t i = 0; i < p.n_kept; i++) {
            n = pareto_front(&p, front);
            assert_true(has(front, n, p.kept[i]));
            assert_false(has(p.kept, i, p.kept[i]));
        }
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_front),     cmocka_unit_test(test_equals),
        cmocka_unit_test(test_counts),    cmocka_unit_test(test_levels),
        cmocka_unit_test(test_keep),      cmocka_unit_test(test_random),
        cmocka_unit_test(test_different),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
