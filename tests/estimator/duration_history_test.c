// DurationHistory: error and coverage on synthetic tenants, time already run, censoring.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "estimator/duration_history.h"
#include "tests/runner.h"

enum { TENANTS = 12, JOBS = 600, WARM = 150 };

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 26) == ERR_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static DurationHistory history(void) {
    DurationHistory      h;
    const DurationParams p = DURATION_PARAMS;
    assert_int_equal(duration_history_init(&h, &p, &arena), ERR_OK);
    return h;
}

static DurationEstimate left_of(const DurationHistory *h, const JobTraits *t, double done_s,
                                const DurationRecord *running, uint32_t n) {
    DurationQuery q = {
        .traits = *t, .done_s = done_s, .running = running, .n_running = n, .self = UINT32_MAX};
    return duration_history_left(h, &q);
}

typedef struct Accuracy {
    double   rms, global, covered;
    uint32_t n;
} Accuracy;

// Durations of a tenant are log-normal around its own mean; done_s: work done when asked.
static Accuracy accuracy(double done_s, uint64_t seed) {
    DurationHistory h = history();
    Rng             r = {seed};
    double          mean[TENANTS], all = 0;
    Accuracy        a = {0};
    for (uint32_t t = 0; t < TENANTS; t++) all += (mean[t] = 7 + 1.5 * rng_normal(&r)) / TENANTS;
    for (uint32_t i = 0; i < JOBS; i++) {
        uint32_t  t = (uint32_t)rng_below(&r, TENANTS);
        JobTraits x = {.tenant = t + 1, .gpus = 1};
        double    work_s = exp(mean[t] + 0.8 * rng_normal(&r));
        if (i > WARM && work_s > done_s + 1) {
            DurationEstimate e = left_of(&h, &x, done_s, NULL, 0);
            double           left = work_s - done_s, miss = log(e.left_s / left);
            a.rms += miss * miss;
            a.global += (log(left) - all) * (log(left) - all);
            a.covered += left >= e.low_s && left <= e.high_s;
            a.n++;
        }
        duration_history_end(&h, &x, work_s);
    }
    a.rms = sqrt(a.rms / a.n);
    a.global = sqrt(a.global / a.n);
    a.covered /= a.n;
    return a;
}

static void test_error_and_coverage(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        Accuracy fresh = accuracy(0, seed), later = accuracy(600, seed);
        print_message("submission: rms %.2f (one mean for all: %.2f), covered %.3f; after 600 s: "
                      "rms %.2f, covered %.3f\n",
                      fresh.rms, fresh.global, fresh.covered, later.rms, later.covered);
        assert_true(fresh.rms < 1 && fresh.rms < 0.9 * fresh.global);  // at best 0.8
        assert_true(fresh.covered > 0.85 && fresh.covered < 0.98);
        assert_true(later.covered > 0.85 && later.covered < 0.99);
    }
}

static void test_work_done_rules_out_short_ends(void **state) {
    (void)state;
    DurationHistory h = history();
    JobTraits       x = {.tenant = 1, .gpus = 1};
    for (uint32_t i = 0; i < 40; i++) duration_history_end(&h, &x, i % 2 == 0 ? 10 : 10000);
    DurationEstimate fresh = left_of(&h, &x, 0, NULL, 0);
    DurationEstimate later = left_of(&h, &x, 60, NULL, 0);
    DurationEstimate late = left_of(&h, &x, 9000, NULL, 0);
    assert_true(fresh.left_s > 100 && fresh.left_s < 2000 && fresh.log_sd > 2);
    assert_true(later.left_s > 5000 && later.left_s < 14000 && later.log_sd < fresh.log_sd);
    assert_true(late.left_s < later.left_s);
    assert_true(later.low_s <= later.left_s && later.left_s <= later.high_s);
}

static void test_running_jobs_are_censored_not_ignored(void **state) {
    (void)state;
    DurationHistory h = history();
    JobTraits       x = {.tenant = 1, .gpus = 2};
    DurationRecord  running[20];
    for (uint32_t i = 0; i < 20; i++) duration_history_end(&h, &x, 90 + i);
    for (uint32_t i = 0; i < 20; i++) running[i] = duration_record(&x, 5000);
    DurationEstimate without = left_of(&h, &x, 0, NULL, 0);
    DurationEstimate with = left_of(&h, &x, 0, running, 20);
    assert_true(without.left_s < 200);
    assert_true(with.left_s > 1.5 * without.left_s);
    assert_true(with.high_s > 5000);
}

static void test_prior_holds_without_records(void **state) {
    (void)state;
    DurationHistory  h = history();
    JobTraits        x = {.tenant = 1, .gpus = 1};
    DurationEstimate e = left_of(&h, &x, 0, NULL, 0);
    assert_true(e.left_s > 800 && e.left_s < 1800);
    assert_true(fabs(e.log_sd - 2) < 0.3);
    assert_null(duration_history_at(&h, 0));
}

// The slow twin: the same curve from a plain walk over all records for every bin.
static double slow_survival(const DurationRecord *at, uint32_t n, double until_s) {
    double alive = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at_risk = 0, deaths = 0;
        if (at[i].work_s > until_s) continue;
        for (uint32_t k = 0; k < n; k++) {
            at_risk += at[k].work_s >= at[i].work_s;
            deaths += at[k].work_s == at[i].work_s;
        }
        alive *= 1 - (double)deaths / at_risk;
    }
    return alive;
}

static void test_median_agrees_with_plain_kaplan_meier(void **state) {
    (void)state;
    DurationParams  p = {1, 1, 1, 0, 1, 1e12, 1200, 2, 1e-9};
    DurationHistory h;
    DurationRecord  all[200];
    Rng             r = {3};
    JobTraits       x = {.tenant = 1};
    assert_int_equal(duration_history_init(&h, &p, &arena), ERR_OK);
    for (uint32_t i = 0; i < 200; i++) {
        all[i] = duration_record(&x, exp(6 + rng_normal(&r)));
        duration_history_end(&h, &x, all[i].work_s);
    }
    DurationEstimate e = left_of(&h, &x, 0, NULL, 0);
    assert_true(fabs(slow_survival(all, 200, e.low_s) - 0.95) < 0.05);
    assert_true(fabs(slow_survival(all, 200, e.high_s) - 0.05) < 0.05);
}

// What a user says counts by its precision, and not against the work already done.
static void test_told_durations_are_weighed(void **state) {
    (void)state;
    DurationHistory h = history();
    JobTraits       x = {.tenant = 1, .gpus = 1};
    for (uint32_t i = 0; i < 60; i++) duration_history_end(&h, &x, 100 + i);
    DurationQuery    sharp = {.traits = x, .told_s = 10000, .told_sd = 0.1}, vague = sharp;
    DurationQuery    late = {.traits = x, .done_s = 20000, .told_s = 10000, .told_sd = 0.1};
    DurationEstimate none = left_of(&h, &x, 0, NULL, 0);
    vague.told_sd = 5;
    DurationEstimate a = duration_history_left(&h, &sharp), b = duration_history_left(&h, &vague);
    assert_true(a.left_s > 5000 && a.left_s < 15000);
    assert_true(b.left_s < 2 * none.left_s);
    assert_true(duration_history_left(&h, &late).left_s > 1);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_and_coverage),
        cmocka_unit_test(test_work_done_rules_out_short_ends),
        cmocka_unit_test(test_running_jobs_are_censored_not_ignored),
        cmocka_unit_test(test_prior_holds_without_records),
        cmocka_unit_test(test_told_durations_are_weighed),
        cmocka_unit_test(test_median_agrees_with_plain_kaplan_meier),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
