// Blocks on several cores are given one where they lose by the others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/live/block_width.h"
#include "tests/runner.h"

#define SECOND_NS INT64_C(1000000000)

static const double one_ns = 300e3, many_ns = 170e3;

static void the_table_is_believed_first(void **state) {
    (void)state;
    BlockWidth w = {0};
    assert_false(block_width_one(&w, one_ns, many_ns, 1));
    assert_false(block_width_one(&w, one_ns, one_ns, 1));  // the policy's choice
    assert_false(block_width_one(&w, 2e3, 3e3, 1));
}

// One block in twenty is held up on a quiet machine: that is no reason to give up cores.
static void a_rare_delay_changes_nothing(void **state) {
    (void)state;
    BlockWidth w = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        block_width_note(&w, one_ns, true, i % 20 == 0 ? 50 : 1.05, SECOND_NS + i);
        assert_false(block_width_one(&w, one_ns, many_ns, SECOND_NS + i));
    }
}

static void hold_up(BlockWidth *w, TimeNs now) {
    for (uint32_t i = 0; i < 100; i++) {
        block_width_note(w, one_ns, true, i % 4 != 0 ? 20 : 1, now);  // a member was not running
        block_width_note(w, one_ns, false, i % 10 == 0 ? 20 : 1, now);
    }
}

static void members_that_wait_for_each_other_lose(void **state) {
    (void)state;
    BlockWidth w = {0};
    hold_up(&w, SECOND_NS);
    assert_true(block_width_one(&w, one_ns, many_ns, SECOND_NS));
    assert_false(block_width_one(&w, 100 * one_ns, 100 * many_ns, SECOND_NS));  // another length
}

// Blocks on one core that suffer as much are no better.
static void one_core_has_to_be_faster(void **state) {
    (void)state;
    BlockWidth w = {0};
    for (uint32_t i = 0; i < 100; i++) {
        block_width_note(&w, one_ns, true, 20, SECOND_NS);
        block_width_note(&w, one_ns, false, 20, SECOND_NS);
    }
    assert_false(block_width_one(&w, one_ns, many_ns, SECOND_NS));
}

static void it_is_forgotten(void **state) {
    (void)state;
    BlockWidth w = {0};
    hold_up(&w, SECOND_NS);
    assert_false(block_width_one(&w, one_ns, many_ns, 20 * SECOND_NS));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_believed_first),
        cmocka_unit_test(a_rare_delay_changes_nothing),
        cmocka_unit_test(members_that_wait_for_each_other_lose),
        cmocka_unit_test(one_core_has_to_be_faster),
        cmocka_unit_test(it_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
