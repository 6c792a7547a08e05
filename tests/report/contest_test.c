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

#include "report/contest.h"
#include "tests/runner.h"

static double       lat[] = {1, 2, 3};
static ContestTrial tried[] = {{50, 1}, {120, 0.7}};
static ContestEntry entries[] = {
    {"fast", {200, 5, 6, 5}, 2, 4, 0.99, 0.1, 0.5, {1, 2}, {1, 0.98}, lat, 3, tried, 2},
    {"base", {100, 5, INFINITY, 1}, 4, 9, 0.97, 0.2, 0.6, {2, 8}, {0.99, 0.95}, lat, 3, tried, 2},
};
static ContestMix    mixes[] = {{"light", "two networks", {80, 100}, entries, 2},
                                {"heavy", NULL, {NAN, NAN}, entries, 2}};
static const Contest contest = {"a machine", "base", 0.95, 0.8, {0.8, 1}, 5, mixes, 2};

static void test_json_has_the_promised_form(void **state) {
    (void)state;
    json_t     *doc = NULL;
    const char *machine, *mix, *policy;
    double      qps, ci, mean, p99, hit, conflict, use;
    json_t     *equal;
    assert_int_equal(contest_json(&contest, &doc), ERR_OK);
    assert_int_equal(json_unpack(doc, "{s:s,s:[{s:s,s:[{s:s,s:F,s:F,s:F,s:F,s:F,s:F,s:F,s:o}]}]}",
                                 "machine", &machine, "mixes", "mix", &mix, "policies", "policy",
                                 &policy, "qps", &qps, "qps_ci", &ci, "mean_ms", &mean, "p99_ms",
                                 &p99, "hit_rate", &hit, "conflict_rate", &conflict, "core_use",
                                 &use, "equal_load", &equal),
                     0);
    assert_string_equal(machine, "a machine");
    assert_string_equal(mix, "light");
    assert_string_equal(policy, "fast");
    assert_true(qps == 200 && ci == 6 && mean == 2 && p99 == 4 && hit == 0.99 && conflict == 0.1 &&
                use == 0.5);
    const char *of;
    double      share, rate, ms;
    assert_int_equal(json_array_size(equal), 2);
    assert_int_equal(json_unpack(json_array_get(equal, 1), "{s:s,s:F,s:F,s:F}", "of", &of, "share",
                                 &share, "qps", &rate, "mean_ms", &ms),
                     0);
    assert_string_equal(of, "base");
    assert_true(share == 1 && rate == 100 && ms == 2);
    json_decref(doc);
}

static void test_what_is_unknown_is_null_or_missing(void **state) {
    (void)state;
    json_t *doc = NULL;
    assert_int_equal(contest_json(&contest, &doc), ERR_OK);
    json_t *heavy = json_array_get(json_object_get(doc, "mixes"), 1);
    json_t *base = json_array_get(json_object_get(heavy, "policies"), 1);
    assert_true(json_is_null(json_object_get(base, "qps_ci")));
    assert_int_equal(json_array_size(json_object_get(base, "equal_load")), 0);
    json_decref(doc);
}

static void test_the_table_has_values_and_ratios(void **state) {
    (void)state;
    Arena  a;
    char  *text = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&text, &len);
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(contest_print(&contest, &a, f), ERR_OK);
    (void)fclose(f);
    assert_non_null(strstr(text, "200.0"));
    assert_non_null(strstr(text, " 100 "));  // percent more than the baseline
    assert_non_null(strstr(text, "-50"));    // latency at equal load
    assert_non_null(strstr(text, "against base"));
    free(text);
    arena_finish(&a);
}

static void test_the_page_has_a_section_a_mix(void **state) {
    (void)state;
    Arena  a;
    Page   p;
    char  *text = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&text, &len);
    assert_int_equal(arena_init(&a, 1 << 22), ERR_OK);
    page_begin(&p, f, &a, "contest");
    assert_int_equal(contest_page(&contest, &a, &p), ERR_OK);
    assert_int_equal(page_end(&p), ERR_OK);
    (void)fclose(f);
    assert_int_equal(p.n_charts, 7);
    assert_non_null(strstr(text, "<h2>light</h2>"));
    assert_non_null(strstr(text, "<h2>heavy</h2>"));
    assert_non_null(strstr(text, "two networks"));
    free(text);
    arena_finish(&a);
}

static void test_without_its_baseline_the_first_is_taken(void **state) {
    (void)state;
    Contest c = contest;
    c.baseline = "absent";
    assert_ptr_equal(contest_baseline(&c, &mixes[0]), &entries[0]);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_has_the_promised_form),
        cmocka_unit_test(test_what_is_unknown_is_null_or_missing),
        cmocka_unit_test(test_the_table_has_values_and_ratios),
        cmocka_unit_test(test_the_page_has_a_section_a_mix),
        cmocka_unit_test(test_without_its_baseline_the_first_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
