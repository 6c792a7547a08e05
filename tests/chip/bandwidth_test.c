#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "chip/sim/chip_sim_int.h"
#include "tests/runner.h"

enum { MOST = 128 };

static void test_by_hand(void **state) {
    (void)state;
    const double demand[] = {1, 0, 5, 10};
    double       got[4];
    assert_true(bandwidth_equal_speed(demand, 4, 16) == 1);
    assert_true(bandwidth_equal_speed(demand, 4, 8) == 0.5);
    assert_true(bandwidth_equal_speed(demand, 0, 8) == 1);
    bandwidth_max_min(demand, 4, 16, got);
    assert_true(got[0] == 1 && got[1] == 0 && got[2] == 5 && got[3] == 10);
    bandwidth_max_min(demand, 4, 9, got);  // 1, and 4 for each of the others
    assert_true(got[0] == 1 && got[1] == 0 && got[2] == 4 && got[3] == 4);
    bandwidth_max_min(demand, 4, 1.5, got);
    assert_true(got[0] == 0.5 && got[2] == 0.5 && got[3] == 0.5);
}

// The water-filling level, by bisection.
static double level_of(const double *demand, uint32_t n, double bytes) {
    double lo = 0, hi = bytes;
    for (int i = 0; i < 100; i++) {
        double level = (lo + hi) / 2, sum = 0;
        for (uint32_t k = 0; k < n; k++) sum += fmin(demand[k], level);
        *(sum > bytes ? &hi : &lo) = level;
    }
    return (lo + hi) / 2;
}

static void test_as_by_halving(void **state) {
    (void)state;
    Rng rng = {3};
    for (int round = 0; round < 2000; round++) {
        double   demand[MOST], got[MOST], sum = 0, spent = 0, bytes = 0.1 + 50 * rng_unit64(&rng);
        uint32_t n = (uint32_t)rng_below(&rng, MOST + 1);
        for (uint32_t i = 0; i < n; i++) {
            demand[i] = rng_below(&rng, 4) == 0 ? 0 : rng_exp(&rng);
            sum += demand[i];
        }
        double level = level_of(demand, n, bytes);
        bandwidth_max_min(demand, n, bytes, got);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(fabs(got[i] - fmin(demand[i], level)) < 1e-9);
            spent += got[i];
        }
        assert_true(fabs(spent - fmin(sum, bytes)) < 1e-9);
        assert_true(fabs(bandwidth_equal_speed(demand, n, bytes) -
                         (sum > bytes ? bytes / sum : 1)) < 1e-12);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_as_by_halving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
