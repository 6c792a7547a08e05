#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/chip/yard.h"

static ChipResult simulate(Yard *y) {
    ChipResult r;
    assert_int_equal(chip_simulate(&y->run, &y->arena, &r), ERR_OK);
    return r;
}

static void expect(const ChipResult *r, uint32_t i, TimeNs finish, Outcome o) {
    assert_int_equal(r->answers[i].finish, finish);
    assert_int_equal(r->answers[i].outcome, o);
}

// One unit, enough bandwidth: layers follow each other, requests too.
static void test_one_after_the_other(void **state) {
    (void)state;
    Yard y;
    yard_open(&y, 1, (uint32_t[]){1}, 16);
    yard_tenant(&y, 2, (ChipCost[]){{100, 4, 7}, {50, 2, 3}});
    yard_ask(&y, 0, 1000, 1150);
    yard_ask(&y, 0, 1010, 1200);
    ChipResult r = simulate(&y);
    expect(&r, 0, 1150, OUTCOME_MET);
    expect(&r, 1, 1300, OUTCOME_LATE);
    assert_int_equal(r.layers, 4);
    assert_int_equal(r.span, 300);
    assert_true(r.layer_pj == 20 && r.bytes == 1000 && r.busy_unit_ns == 300);
    yard_close(&y);
}

// Each asks for all of the memory: half the speed for both, until one is done.
static void test_all_slow_down_alike(void **state) {
    (void)state;
    Yard y;
    yard_open(&y, 1, (uint32_t[]){2}, 8);
    yard_tenant(&y, 1, (ChipCost[]){{100, 8, 0}});
    yard_tenant(&y, 1, (ChipCost[]){{300, 8, 0}});
    yard_ask(&y, 0, 0, 1000);
    yard_ask(&y, 1, 0, 1000);
    ChipResult r = simulate(&y);
    expect(&r, 0, 200, OUTCOME_MET);
    expect(&r, 1, 400, OUTCOME_MET);
    yard_close(&y);
}

// 2 and 14 of 8: alike, both run at half speed. Max-min, the small one has all it asks for, the
// large one 6 of 14.
static void test_sharing_rules_differ(void **state) {
    (void)state;
    for (int fair = 0; fair < 2; fair++) {
        Yard y;
        yard_open(&y, 1, (uint32_t[]){2}, 8);
        yard_tenant(&y, 1, (ChipCost[]){{120, 2, 0}});
        yard_tenant(&y, 1, (ChipCost[]){{240, 14, 0}});
        yard_ask(&y, 0, 0, 1000);
        yard_ask(&y, 1, 0, 1000);
        y.run.sharing = fair ? CHIP_MAX_MIN : CHIP_EQUAL;
        ChipResult r = simulate(&y);
        // alike: 240, then 240 - 120 = 120 left at 8 / 14: 210 more
        // fair: 120, then 240 - 120 * 6 / 14 = 188.571 left at 8 / 14: 330 more
        expect(&r, 0, fair ? 120 : 240, OUTCOME_MET);
        expect(&r, 1, 450, OUTCOME_MET);
        yard_close(&y);
    }
}

// While a layer is on its way to a unit it moves nothing, and the unit is taken.
static void test_dispatch_takes_time(void **state) {
    (void)state;
    Yard y;
    yard_open(&y, 1, (uint32_t[]){2}, 8);
    yard_tenant(&y, 1, (ChipCost[]){{100, 8, 0}});
    y.run.controller.dispatch_ns = 10;
    yard_ask(&y, 0, 0, 1000);
    yard_ask(&y, 0, 50, 1000);
    ChipResult r = simulate(&y);
    expect(&r, 0, 160, OUTCOME_MET);  // 10 + 50 alone, then half speed for 50: 10 to 60 to 160
    expect(&r, 1, 210, OUTCOME_MET);
    yard_close(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_all_slow_down_alike),
        cmocka_unit_test(test_sharing_rules_differ),
        cmocka_unit_test(test_dispatch_takes_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
