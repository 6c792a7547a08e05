#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/budget.h"
#include "tests/runner.h"

static void test_a_part_is_bounded_by_the_whole(void **state) {
    (void)state;
    Budget whole = {.setting = "buffered_mb", .most = 100};
    Budget part = {.setting = "request_mb", .whole = &whole, .most = 80};
    Budget open = {.whole = &whole};
    assert_true(budget_take(&part, 60));
    assert_false(budget_take(&part, 21));
    assert_true(budget_take(&open, 40));
    assert_false(budget_take(&part, 1));
    assert_int_equal(budget_used(&part), 60);
    assert_int_equal(budget_used(&whole), 100);
    assert_ptr_equal(budget_short(&part, 30), &part);
    assert_ptr_equal(budget_short(&part, 10), &whole);
    assert_null(budget_short(&part, 0));
    assert_false(budget_take(&part, SIZE_MAX));
    budget_give(&open, 40);
    assert_true(budget_take(&part, 20));
    budget_give(&part, 80);
    assert_int_equal(budget_used(&whole), 0);
    assert_true(budget_take(&part, 30));
    assert_true(budget_move(&part, &open));
    assert_int_equal(budget_used(&open), 30);
    assert_int_equal(budget_used(&whole), 30);
    Budget small = {.most = 29};
    assert_false(budget_move(&part, &small));
    assert_ptr_equal(part.whole, &open);
    budget_give(&part, 30);
    assert_int_equal(budget_used(&whole), 0);
    assert_true(budget_take(NULL, SIZE_MAX));
    budget_give(NULL, 1);
}

static void test_a_refusal_because_of_others_is_known(void **state) {
    (void)state;
    Budget whole = {.most = 1000}, other = {.whole = &whole}, b = {.whole = &whole, .most = 2000};
    assert_true(budget_take(&other, 600));
    assert_false(budget_take(&b, 2001));  // its own limit
    assert_false(budget_crowded(&b));
    assert_false(budget_take(&b, 1001));  // more than the whole has
    assert_false(budget_crowded(&b));
    assert_false(budget_take(&b, 500));
    assert_true(budget_crowded(&b));
    assert_true(budget_take(&b, 400));
    assert_false(budget_crowded(&b));
    assert_false(budget_take(&b, 601));  // with what it holds
    assert_false(budget_crowded(&b));
    assert_false(budget_take(&b, 600));
    assert_true(budget_crowded(&b));
    budget_give(&b, 400);
    budget_give(&other, 600);
    assert_int_equal(budget_used(&whole), 0);
}

static void test_an_arena_is_charged(void **state) {
    (void)state;
    Arena  a;
    Budget small = {.most = 200000}, large = {.most = 10000000};
    assert_int_equal(arena_init(&a, 1 << 30), ERR_OK);
    assert_non_null(arena_try(&a, 100000, 1, 64));
    assert_true(arena_charge(&a, &small));
    assert_true(budget_used(&small) >= 100000);
    assert_null(arena_try(&a, 200000, 1, 64));
    assert_int_equal(a.used, 100000);
    assert_true(arena_charge(&a, &large));
    assert_int_equal(budget_used(&small), 0);
    char *p = arena_try(&a, 2000000, 1, 64);
    assert_non_null(p);
    p[1999999] = 1;
    assert_true(budget_used(&large) >= 2100000);
    assert_false(arena_charge(&a, &small));
    assert_ptr_equal(a.budget, &large);
    arena_rewind(&a, 0);
    assert_true(budget_used(&large) >= 2100000);
    arena_shrink(&a, 4096);
    assert_true(budget_used(&large) <= 65536);
    p = arena_try(&a, 2100000, 1, 1);
    assert_non_null(p);
    for (size_t i = 65536; i < 2100000; i++) assert_int_equal(p[i], 0);
    arena_finish(&a);
    assert_int_equal(budget_used(&large), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_part_is_bounded_by_the_whole),
        cmocka_unit_test(test_a_refusal_because_of_others_is_known),
        cmocka_unit_test(test_an_arena_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
