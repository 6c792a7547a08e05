#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "node/sim/contention.h"
#include "tests/runner.h"

enum { MOST = 20 };

// Slow reference: the least satisfied unsaturated demand gets the next increment.
static void drop_by_drop(const double *demand, uint32_t n, double supply, double *rate) {
    const double drop = 1e-3;
    for (uint32_t i = 0; i < n; i++) rate[i] = 0;
    for (double left = supply; left >= drop; left -= drop) {
        uint32_t poorest = n;
        for (uint32_t i = 0; i < n; i++)
            if (rate[i] + drop <= demand[i] && (poorest == n || rate[i] < rate[poorest]))
                poorest = i;
        if (poorest == n) return;
        rate[poorest] += drop;
    }
}

static void test_same_as_drop_by_drop(void **state) {
    (void)state;
    Rng r = {11};
    for (int round = 0; round < 60; round++) {
        double   demand[MOST], rate[MOST], slow[MOST], sum = 0, asked = 0;
        uint32_t n = 1 + (uint32_t)rng_below(&r, MOST);
        double   supply = 1 + 9 * rng_unit64(&r);
        for (uint32_t i = 0; i < n; i++) {
            demand[i] = rng_below(&r, 4) == 0 ? 0 : 3 * rng_unit64(&r);
            asked += demand[i];
        }
        contention_share(demand, n, supply, rate);
        drop_by_drop(demand, n, supply, slow);
        for (uint32_t i = 0; i < n; i++) {
            sum += rate[i];
            assert_true(rate[i] <= demand[i]);
            assert_true(fabs(rate[i] - slow[i]) < 0.03);
        }
        assert_true(sum <= supply * (1 + 1e-12));
        assert_true(fabs(sum - fmin(supply, asked)) < 1e-9);
    }
}

static void test_nobody_is_cut_for_a_richer_one(void **state) {
    (void)state;
    double demand[] = {1, 50, 2, 40, 3}, rate[5];
    contention_share(demand, 5, 20, rate);
    assert_true(rate[0] == 1 && rate[2] == 2 && rate[4] == 3);
    assert_true(fabs(rate[1] - 7) < 1e-12 && fabs(rate[3] - 7) < 1e-12);
    contention_share(demand, 5, 200, rate);
    for (int i = 0; i < 5; i++) assert_true(rate[i] == demand[i]);
}

static void test_newcomer(void **state) {
    (void)state;
    double demand[] = {30, 30, 30}, rate[4];
    assert_true(contention_newcomer(NULL, 0, 90) == 90);
    assert_true(contention_newcomer(demand, 1, 90) == 60);
    assert_true(fabs(contention_newcomer(demand, 3, 90) - 22.5) < 1e-12);
    double with[] = {30, 30, 30, 1e9};
    contention_share(with, 4, 90, rate);
    assert_true(fabs(contention_newcomer(demand, 3, 90) - rate[3]) < 1e-12);
}

static void test_slices(void **state) {
    (void)state;
    const uint64_t mb = 1 << 20;
    assert_true(contention_slice(4 * mb, 8 * mb, 12.0 * (1 << 20)) == 1);
    // Two blocks that each demand the whole cache get half each.
    assert_true(fabs(contention_slice(12 * mb, 24 * mb, 12.0 * (1 << 20)) - 0.5) < 1e-12);
    // A small footprint beside a large one loses a part; the large one gets the rest.
    double small = contention_slice(2 * mb, 22 * mb, 12.0 * (1 << 20));
    double large = contention_slice(20 * mb, 22 * mb, 12.0 * (1 << 20));
    assert_true(small > 0 && small < 0.2 && large > 0.8 && large < 1);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_drop_by_drop),
        cmocka_unit_test(test_nobody_is_cut_for_a_richer_one),
        cmocka_unit_test(test_newcomer),
        cmocka_unit_test(test_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
