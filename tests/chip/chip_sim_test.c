#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/chip/stepwise.h"
#include "tests/runner.h"

static ChipResult simulate(TestPackage *y) {
    ChipResult r;
    assert_int_equal(chip_simulate(&y->run, &y->arena, &r), ERR_OK);
    return r;
}

static void expect(const ChipResult *r, uint32_t i, TimeNs finish, Outcome o) {
    assert_int_equal(r->answers[i].finish, finish);
    assert_int_equal(r->answers[i].outcome, o);
}

// One unit and enough bandwidth: layers and requests run one after the other.
static void test_one_after_the_other(void **state) {
    (void)state;
    TestPackage y;
    test_package_open(&y, 1, (uint32_t[]){1}, 16);
    test_package_tenant(&y, 2, (ChipCost[]){{100, 4, 7}, {50, 2, 3}});
    test_package_ask(&y, 0, 1000, 1150);
    test_package_ask(&y, 0, 1010, 1200);
    ChipResult r = simulate(&y);
    expect(&r, 0, 1150, OUTCOME_MET);
    expect(&r, 1, 1300, OUTCOME_LATE);
    assert_int_equal(r.layers, 4);
    assert_int_equal(r.span, 300);
    assert_true(r.layer_pj == 20 && r.bytes == 1000 && r.busy_unit_ns == 300);
    test_package_close(&y);
}

// Each layer demands the whole bandwidth: both run at half speed until one ends.
static void test_all_slow_down_alike(void **state) {
    (void)state;
    TestPackage y;
    test_package_open(&y, 1, (uint32_t[]){2}, 8);
    test_package_tenant(&y, 1, (ChipCost[]){{100, 8, 0}});
    test_package_tenant(&y, 1, (ChipCost[]){{300, 8, 0}});
    test_package_ask(&y, 0, 0, 1000);
    test_package_ask(&y, 1, 0, 1000);
    ChipResult r = simulate(&y);
    expect(&r, 0, 200, OUTCOME_MET);
    expect(&r, 1, 400, OUTCOME_MET);
    test_package_close(&y);
}

// Demands of 2 and 14 of 8: with equal sharing both run at half speed; with max-min the small one
// gets its demand, the large one 6 of 14.
static void test_sharing_rules_differ(void **state) {
    (void)state;
    for (int fair = 0; fair < 2; fair++) {
        TestPackage y;
        test_package_open(&y, 1, (uint32_t[]){2}, 8);
        test_package_tenant(&y, 1, (ChipCost[]){{120, 2, 0}});
        test_package_tenant(&y, 1, (ChipCost[]){{240, 14, 0}});
        test_package_ask(&y, 0, 0, 1000);
        test_package_ask(&y, 1, 0, 1000);
        y.run.sharing = fair ? CHIP_MAX_MIN : CHIP_EQUAL;
        ChipResult r = simulate(&y);
        // equal: 240, then 240 - 120 = 120 left at 8 / 14: 210 more
        // max-min: 120, then 240 - 120 * 6 / 14 = 188.571 left at 8 / 14: 330 more
        expect(&r, 0, fair ? 120 : 240, OUTCOME_MET);
        expect(&r, 1, 450, OUTCOME_MET);
        test_package_close(&y);
    }
}

// During its dispatch a layer has no traffic, but occupies the unit.
static void test_dispatch_takes_time(void **state) {
    (void)state;
    TestPackage y;
    test_package_open(&y, 1, (uint32_t[]){2}, 8);
    test_package_tenant(&y, 1, (ChipCost[]){{100, 8, 0}});
    y.run.controller.dispatch_ns = 10;
    test_package_ask(&y, 0, 0, 1000);
    test_package_ask(&y, 0, 50, 1000);
    ChipResult r = simulate(&y);
    expect(&r, 0, 160, OUTCOME_MET);  // 10 + 50 alone, then half speed for 50: 10 to 60 to 160
    expect(&r, 1, 210, OUTCOME_MET);
    test_package_close(&y);
}

// A throttled layer stays below its cap, alone or not.
static uint32_t decide_capped(void *state, const ChipView *v, ChipAction *out, uint32_t max) {
    uint32_t     n = test_package_decide(state, v, out, max / 2), starts = n;
    const float *cap = state;
    for (uint32_t i = 0; i < starts; i++)
        out[n++] = (ChipAction){.verb = CHIP_THROTTLE, .unit = out[i].unit, .cap = *cap};
    return n;
}

static size_t capped_size(const ChipSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(float);
}

static void capped_init(void *state, const ChipSetup *setup, const void *settings,
                        const void *loaded) {
    (void)setup, (void)loaded;
    memcpy(state, settings, sizeof(float));
}

static const ChipPolicy capped = {
    .name = "capped", .state_size = capped_size, .init = capped_init, .decide = decide_capped};

static void test_throttle(void **state) {
    (void)state;
    static const float cap = 2;
    TestPackage        y;
    test_package_open(&y, 1, (uint32_t[]){2}, 8);
    test_package_tenant(&y, 1, (ChipCost[]){{100, 8, 0}});
    y.run.policy = &capped;
    y.run.settings = &cap;
    test_package_ask(&y, 0, 0, 1000);
    test_package_ask(&y, 0, 0, 1000);
    ChipResult r = simulate(&y);
    expect(&r, 0, 400, OUTCOME_MET);
    expect(&r, 1, 400, OUTCOME_MET);
    y.run.setup.throttle_floor = 0.5F;  // 4 of the 8 that it demands: both together fit
    r = simulate(&y);
    expect(&r, 0, 200, OUTCOME_MET);
    expect(&r, 1, 200, OUTCOME_MET);
    test_package_close(&y);
}

static void test_as_a_nanosecond_at_a_time(void **state) {
    (void)state;
    Rng rng = {5};
    for (int round = 0; round < 300; round++) {
        TestPackage y;
        Stepwise    slow;
        float       cap = round % 3 == 0 ? 0.5F + 5 * rng_unit(&rng) : INFINITY;
        test_package_random(&y, &rng);
        y.run.policy = &capped;
        y.run.settings = &cap;
        stepwise(&y.run, cap, &slow);
        ChipResult r = simulate(&y);
        for (uint32_t i = 0; i < r.n; i++)
            expect(&r, i, slow.answers[i].finish, slow.answers[i].outcome);
        test_package_close(&y);
    }
}

// A request is dropped at its deadline: removed if it waits, answered if a layer runs.
static void test_firm(void **state) {
    (void)state;
    TestPackage y;
    test_package_open(&y, 1, (uint32_t[]){1}, 8);
    test_package_tenant(&y, 2, (ChipCost[]){{100, 1, 1}, {100, 1, 1}});
    y.run.setup.firm = true;
    test_package_ask(&y, 0, 0, 150);   // its second layer runs until 200 in vain
    test_package_ask(&y, 0, 10, 60);   // never runs
    test_package_ask(&y, 0, 20, 400);  // just in time
    ChipResult r = simulate(&y);
    expect(&r, 0, 150, OUTCOME_REJECTED);
    expect(&r, 1, 60, OUTCOME_REJECTED);
    expect(&r, 2, 400, OUTCOME_MET);
    assert_int_equal(r.layers, 4);
    test_package_close(&y);
}

static void test_refuses(void **state) {
    (void)state;
    TestPackage y;
    ChipResult  r;
    test_package_open(&y, 2, (uint32_t[]){1, 0}, 8);
    test_package_tenant(&y, 2,
                        (ChipCost[]){{100, 1, 1}, {10, 1, 1}, {INFINITY, 1, 1}, {100, 1, 1}});
    test_package_ask(&y, 0, 0, 150);
    assert_int_equal(chip_simulate(&y.run, &y.arena, &r), ERR_ARG);
    assert_non_null(strstr(err_why(), "layer 1"));
    y.costs[0][2].ns = 5;
    y.run.setup.bytes_ns = 0;
    assert_int_equal(chip_simulate(&y.run, &y.arena, &r), ERR_ARG);
    y.run.setup.bytes_ns = 1;
    r = simulate(&y);
    expect(&r, 0, 105, OUTCOME_MET);
    y.run.trace.n = 0;
    r = simulate(&y);
    assert_int_equal(r.n, 0);
    test_package_close(&y);
}

static void test_summary(void **state) {
    (void)state;
    TestPackage y;
    ChipSummary s;
    test_package_open(&y, 1, (uint32_t[]){2}, 10);
    test_package_tenant(&y, 1, (ChipCost[]){{1000, 5, 2e9F}});
    test_package_tenant(&y, 1, (ChipCost[]){{500, 5, 0}});
    y.run.idle_mw = 3e6;
    test_package_ask(&y, 0, 0, 1000);
    test_package_ask(&y, 0, 0, 1000);
    test_package_ask(&y, 0, 0, 1500);
    test_package_ask(&y, 1, 1000, 9000);
    y.run.skip = 1;
    ChipResult r = simulate(&y);
    assert_int_equal(chip_summary(&y.run, &r, CHIP_NONE, &y.arena, &s), ERR_OK);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.met, 2);
    assert_int_equal(s.late, 1);
    assert_true(fabs(s.sla - 2.0 / 3) < 1e-12);
    assert_true(fabs(s.slowdown - pow(2, 1.0 / 3)) < 1e-6);  // 1, 2 and 1 times the best case
    assert_true(fabs(s.mean_ms - 3.5e-3 / 3) < 1e-9 && s.p99_ms == 2e-3);
    assert_true(fabs(s.energy_mj - (6 + 6)) < 1e-6);  // three layers of 2 mJ, 2 us of 3 kW
    assert_true(fabs(s.bandwidth_use - 17500.0 / 20000) < 1e-9);
    assert_true(fabs(s.unit_use - 3500.0 / 4000) < 1e-9);
    assert_int_equal(chip_summary(&y.run, &r, 1, &y.arena, &s), ERR_OK);
    assert_true(s.n == 1 && s.met == 1 && s.slowdown == 1);
    test_package_close(&y);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_all_slow_down_alike),
        cmocka_unit_test(test_sharing_rules_differ),
        cmocka_unit_test(test_dispatch_takes_time),
        cmocka_unit_test(test_throttle),
        cmocka_unit_test(test_as_a_nanosecond_at_a_time),
        cmocka_unit_test(test_firm),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
