// Synthetic samples of a known pressure: the level follows it and nothing else.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "node/live/counters.h"
#include "node/live/interference.h"
#include "tests/runner.h"

enum { SAMPLES = 60 };

static const NodeMachine machine = {
    .n_cores = 2, .n_slices = 1, .slice_bytes = 16e6f, .dram_bytes_ns = 40};

static InterferenceSample sample(Rng *r, double pressure, double noise) {
    double slope = 0.02 + 0.15 * rng_unit64(r);
    double expected = 1e5 + 1e6 * rng_unit64(r);
    double slow = exp(slope * pressure + noise * rng_normal(r));
    return (InterferenceSample){
        .wall_ns = expected * slow, .expected_ns = expected, .slope = slope};
}

static void feed(InterferenceMonitor *w, Rng *r, double pressure, double noise) {
    for (uint32_t i = 0; i < SAMPLES; i++) {
        InterferenceSample s = sample(r, pressure, noise);
        interference_sample(w, &s);
        (void)interference_level(w);
    }
}

static double rank(const double *x, uint32_t n, uint32_t i) {
    double below = 0, same = 0;
    for (uint32_t k = 0; k < n; k++) {
        below += x[k] < x[i];
        same += x[k] == x[i];
    }
    return below + (same - 1) / 2;
}

static double rank_correlation(const double *x, const double *y, uint32_t n) {
    double mean = (n - 1) / 2.0, xy = 0, xx = 0, yy = 0;
    for (uint32_t i = 0; i < n; i++) {
        double a = rank(x, n, i) - mean, b = rank(y, n, i) - mean;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return xy / sqrt(xx * yy);
}

static void level_follows_what_is_injected(void **state) {
    (void)state;
    double              pressure[40], level[40];
    InterferenceMonitor w;
    Rng                 r = {5};
    interference_init(&w, &(InterferenceOptions){0}, &machine);
    for (uint32_t i = 0; i < 40; i++) {
        pressure[i] = 9 * rng_unit64(&r);
        feed(&w, &r, pressure[i], 0.05);
        level[i] = interference_level(&w);
        assert_true(fabs(level[i] - pressure[i]) < 2);
    }
    assert_true(rank_correlation(pressure, level, 40) > 0.9);
}

static void preempted_samples_say_nothing(void **state) {
    (void)state;
    InterferenceMonitor w;
    Rng                 r = {6};
    interference_init(&w, &(InterferenceOptions){0}, &machine);
    feed(&w, &r, 3, 0.02);
    InterferenceMonitor before = w;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        InterferenceSample s = sample(&r, 9, 0);
        s.stolen_ns = 0.04 * s.wall_ns;
        interference_sample(&w, &s);
    }
    assert_int_equal(w.preempted, SAMPLES);
    assert_int_equal(w.samples, before.samples);
    assert_true(interference_pressure(&w) == interference_pressure(&before));
    interference_sample(&w, &(InterferenceSample){0});
    assert_int_equal(w.samples, before.samples);
}

// A running block counts from its start, before any sample, until its end.
static void running_blocks_count(void **state) {
    (void)state;
    InterferenceMonitor w;
    InterferenceLoad    light = {2e6, 4}, heavy = {12e6, 38};
    interference_init(&w, &(InterferenceOptions){0}, &machine);
    assert_int_equal(interference_level(&w), 0);
    interference_begin(&w, light);
    float one = interference_pressure(&w);
    interference_begin(&w, heavy);
    float two = interference_pressure(&w);
    assert_true(one > 0 && two > one && two <= NODE_LEVELS - 1);
    assert_true(interference_level(&w) > 5);
    interference_end(&w, light);
    interference_end(&w, heavy);
    assert_int_equal(interference_level(&w), 0);
}

// A pressure that swings by less than the slack around a border does not move the level.
static void small_swings_do_not_move_the_level(void **state) {
    (void)state;
    InterferenceMonitor w;
    uint32_t            changes = 0;
    interference_init(&w, &(InterferenceOptions){0}, &machine);
    for (uint32_t i = 0; i < 100; i++) {
        double           third = 16e6 / 9 * (2.5 + (i % 2 == 0 ? 0.2 : -0.2));
        InterferenceLoad load = {third, 0};
        uint32_t         before = w.level;
        interference_begin(&w, load);
        changes += interference_level(&w) != before && i > 1;
        interference_end(&w, load);
    }
    assert_int_equal(changes, 0);
}

static void counters_never_fail(void **state) {
    (void)state;
    Counters c;
    uint32_t cpu = 0;
    counters_open(&c, &cpu, 1);
    assert_true(strlen(c.status) > 0);
    assert_true(counters_rate(&c, 1000) == 0);
    assert_true(counters_rate(&c, 2000000) >= 0);
    counters_close(&c);
    assert_false(counters_any(&c));
    counters_open(&c, NULL, 0);
    counters_close(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(level_follows_what_is_injected),
        cmocka_unit_test(preempted_samples_say_nothing),
        cmocka_unit_test(running_blocks_count),
        cmocka_unit_test(small_swings_do_not_move_the_level),
        cmocka_unit_test(counters_never_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
