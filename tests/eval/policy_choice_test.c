// Policies by name with their settings, for the three tiers; variants for ablations.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/policy_choice.h"
#include "tests/runner.h"

static Arena         arena;
static PolicyChoices c;

static int set_up(void **state) {
    (void)state;
    return arena_init(&arena, 1 << 22) == ERR_OK ? 0 : 1;
}

static int tear_down(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static ArgList sets_of(const char *text) {
    return (ArgList){.at = {text}, .n = text != NULL ? 1 : 0};
}

static void fails(Tier t, const char *list, const char *set, const char *reason) {
    ArgList sets = sets_of(set);
    assert_int_equal(policy_choices_read(t, list, &sets, &arena, &c), ERR_ARG);
    if (strstr(err_why(), reason) == NULL) fail_msg("'%s' lacks '%s'", err_why(), reason);
}

static void test_every_row_of_a_tier_is_chosen_by_all(void **state) {
    ArgList none = {0};
    (void)state;
    for (Tier t = 0; t < TIERS; t++) {
        PolicyInfo p;
        uint32_t   n = 0;
        for (; policy_info(t, n, &p); n++) {
            PolicyInfo same;
            assert_true(policy_info_find(t, p.name, &same) && same.policy == p.policy);
            assert_non_null(p.about);
        }
        assert_true(n > 1);
        assert_int_equal(policy_choices_read(t, "all", &none, &arena, &c), ERR_OK);
        assert_true(c.all && c.n == n);
    }
}

static void test_named_policies_keep_their_order(void **state) {
    ArgList none = {0};
    (void)state;
    assert_int_equal(policy_choices_read(TIER_CHIP, "edf,fcfs", &none, &arena, &c), ERR_OK);
    assert_true(!c.all && c.n == 2);
    assert_string_equal(c.at[0].label, "edf");
    assert_ptr_equal(policy_choices_find(&c, "fcfs"), &c.at[1]);
    assert_null(policy_choices_find(&c, "prema"));
}

static void test_wrong_names_and_settings_are_named(void **state) {
    (void)state;
    fails(TIER_NODE, "absent", NULL, "no policy 'absent'; there are fcfs");
    fails(TIER_CLUSTER, "fifo,fifo", NULL, "named twice");
    fails(TIER_NODE, "slack", "slack.absent=1", "absent");
    fails(TIER_NODE, "slack", "fcfs.safety=1", "takes part");
    fails(TIER_NODE, "slack", "safety=1", "POLICY.KEY=VALUE");
}

static void test_one_policy_is_one(void **state) {
    ArgList      sets = sets_of("slack.safety=0.5");
    PolicyChoice one;
    char         text[32];
    (void)state;
    assert_int_equal(policy_choice_read(TIER_NODE, "slack,fcfs", &sets, &arena, &one), ERR_ARG);
    assert_int_equal(policy_choice_read(TIER_NODE, "slack", &sets, &arena, &one), ERR_OK);
    for (uint32_t i = 0; i < one.info.n_rows; i++) {
        const Setting *row = &one.info.rows[i];
        if (strcmp(row->key, "safety") != 0) continue;
        assert_string_equal(setting_text(row, setting_read(row, one.settings), text, sizeof text),
                            "0.5");
        return;
    }
    fail_msg("slack has no setting 'safety'");
}

static void test_ablations_are_parts_with_settings_of_their_own(void **state) {
    ArgList none = {0};
    (void)state;
    assert_int_equal(policy_choices_read(TIER_CLUSTER, "maifs", &none, &arena, &c), ERR_OK);
    assert_int_equal(policy_choices_variants(&arena, "parts", &c), ERR_OK);
    assert_true(c.n > 1);
    assert_string_equal(c.at[1].part_of, "maifs");
    assert_string_equal(c.at[1].label, "maifs attention=false");
    assert_ptr_equal(c.at[1].policy, c.at[0].policy);
    assert_ptr_not_equal(c.at[1].settings, c.at[0].settings);
    assert_int_equal(policy_choices_variants(&arena, "coordination", &c), ERR_OK);
    assert_string_equal(c.at[c.n - 1].label, "maifs epoch_s=300 coordination=everything");
    assert_int_equal(policy_choices_variants(&arena, "tower", &c), ERR_ARG);
    assert_int_equal(policy_choices_read(TIER_CLUSTER, "fifo", &none, &arena, &c), ERR_OK);
    assert_int_equal(policy_choices_variants(&arena, "parts", &c), ERR_ARG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        TEST(test_every_row_of_a_tier_is_chosen_by_all),
        TEST(test_named_policies_keep_their_order),
        TEST(test_wrong_names_and_settings_are_named),
        TEST(test_one_policy_is_one),
        TEST(test_ablations_are_parts_with_settings_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
