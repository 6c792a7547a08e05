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

#include "base/rng.h"
#include "node/peak.h"
#include "tests/runner.h"

typedef struct Curve {  // met falls from 1 to 0 around `at`; a share `noise` is added by chance
    double   at, steep, noise;
    uint32_t runs;
} Curve;

static Err run_curve(void *self, double rate, uint64_t seed, double *hit_rate) {
    Curve   *c = self;
    uint64_t key;
    memcpy(&key, &rate, sizeof key);
    Rng    r = rng_fork((Rng){seed}, key);
    double clean = 1 / (1 + exp(c->steep * (rate / c->at - 1) + log(0.05 / 0.95)));
    c->runs++;
    *hit_rate = fmin(1, fmax(0, clean + c->noise * rng_normal(&r)));
    return ERR_OK;
}

static double find(Curve *c, double start, uint64_t seed) {
    PeakRule rule = PEAK_RULE_DEFAULT;
    double   rate = -1;
    rule.start = start;
    assert_int_equal(peak_find((PeakRun){run_curve, c}, &rule, seed, &rate), ERR_OK);
    return rate;
}

static void test_finds_the_rate_from_either_side(void **state) {
    (void)state;
    static const double at[] = {0.7, 33, 100, 5000, 123456};
    for (int i = 0; i < 5; i++) {
        Curve  c = {.at = at[i], .steep = 20};
        double above = find(&c, at[i] * 30, 1), below = find(&c, at[i] / 30, 1);
        assert_true(fabs(above / at[i] - 1) < 0.01 && fabs(below / at[i] - 1) < 0.01);
        assert_true(c.runs < 2 * 20);
    }
}

static void test_noise_moves_the_answer_little(void **state) {
    (void)state;
    double worst = 0, rates[40];
    for (uint64_t seed = 0; seed < 40; seed++) {
        Curve c = {.at = 250, .steep = 15, .noise = 0.01};
        rates[seed] = find(&c, 100, seed);
        worst = fmax(worst, fabs(rates[seed] / 250 - 1));
    }
    assert_true(worst < 0.15);
    Mean m = stats_mean(rates, 40);
    assert_true(fabs(m.mean / 250 - 1) < 0.02);
}

// An unlucky trial far below the peak must not end the search there.
static Err run_unlucky(void *self, double rate, uint64_t seed, double *hit_rate) {
    uint32_t *runs = self;
    (void)seed;
    *hit_rate = ++*runs == 3 ? 0.94 : rate <= 1000 ? 1 : 0.5;
    return ERR_OK;
}

static void test_one_unlucky_trial_does_not_decide(void **state) {
    (void)state;
    uint32_t runs = 0;
    PeakRule rule = PEAK_RULE_DEFAULT;
    double   rate = 0;
    assert_int_equal(peak_find((PeakRun){run_unlucky, &runs}, &rule, 1, &rate), ERR_OK);
    assert_true(rate > 950 && rate < 1050);
}

static Err run_fixed(void *self, double rate, uint64_t seed, double *hit_rate) {
    (void)rate;
    (void)seed;
    *hit_rate = *(double *)self;
    return ERR_OK;
}

static void test_ends(void **state) {
    (void)state;
    PeakRule rule = PEAK_RULE_DEFAULT;
    double   rate = -1, always = 1, never = 0.2;
    rule.most = 3000;
    assert_int_equal(peak_find((PeakRun){run_fixed, &always}, &rule, 1, &rate), ERR_OK);
    assert_true(rate == 3000);
    assert_int_equal(peak_find((PeakRun){run_fixed, &never}, &rule, 1, &rate), ERR_OK);
    assert_true(rate == 0);
}

static void test_same_seed_same_rate(void **state) {
    (void)state;
    Curve  c = {.at = 77, .steep = 9, .noise = 0.02};
    double a = find(&c, 100, 5), b = find(&c, 100, 5), other = find(&c, 100, 6);
    assert_true(a == b && a != other);
}

static Err run_broken(void *self, double rate, uint64_t seed, double *hit_rate) {
    (void)self;
    (void)rate;
    (void)seed;
    (void)hit_rate;
    return err_set(ERR_IO, "the machine is gone");
}

static void test_errors_come_through(void **state) {
    (void)state;
    PeakRule rule = PEAK_RULE_DEFAULT;
    double   rate = 7;
    assert_int_equal(peak_find((PeakRun){run_broken, NULL}, &rule, 1, &rate), ERR_IO);
    assert_true(rate == 7);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_rate_from_either_side),
        cmocka_unit_test(test_noise_moves_the_answer_little),
        cmocka_unit_test(test_one_unlucky_trial_does_not_decide),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_same_seed_same_rate),
        cmocka_unit_test(test_errors_come_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
