// Means, deltas, baselines and changes over cells.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/report/comparison_fixture.h"
#include "tests/runner.h"

static bool near(double a, double b) { return fabs(a - b) < 1e-12; }

static void test_the_best_baseline_is_told_no_more_and_is_not_the_subject(void **state) {
    Fixture              *f = *state;
    const ComparisonCell *cells = f->cells;
    assert_string_equal(comparison_baseline(&f->comparison, &cells[0], METRIC_SLA)->policy,
                        "clever");
    assert_string_equal(comparison_baseline(&f->comparison, &cells[2], METRIC_SLA)->policy,
                        "plain");
    assert_string_equal(comparison_bound(&f->comparison, &cells[2], METRIC_SLA)->policy, "oracle");
    assert_null(comparison_part(&f->comparison, &cells[0]));
    f->entries[0][1].part_of = "star";  // a part of the subject is no baseline of it
    assert_ptr_equal(comparison_part(&f->comparison, &cells[0]), &f->entries[0][1]);
    assert_string_equal(comparison_baseline(&f->comparison, &cells[0], METRIC_SLA)->policy,
                        "plain");
    f->entries[0][1].part_of = "plain";
    assert_string_equal(comparison_baseline(&f->comparison, &cells[0], METRIC_SLA)->policy,
                        "clever");
    f->comparison.subject = "another";
    assert_string_equal(comparison_baseline(&f->comparison, &cells[0], METRIC_SLA)->policy, "star");
    ComparisonCell bound = {.entries = &f->entries[0][3], .n_entries = 1};
    assert_null(comparison_baseline(&f->comparison, &bound, METRIC_SLA));
}

static void test_differences_are_paired_by_seed(void **state) {
    Fixture *f = *state;
    Mean     m =
        comparison_difference(&f->comparison, &f->entries[0][2], &f->entries[0][1], METRIC_SLA);
    Mean own = comparison_mean(&f->comparison, &f->cells[0], &f->entries[0][2], METRIC_SLA);
    Mean margin = comparison_mean(&f->comparison, &f->cells[0], &f->entries[0][2], METRIC_MARGIN);
    Mean below =
        comparison_mean(&f->comparison, &f->cells[0], &f->entries[0][2], METRIC_BELOW_ORACLE);
    assert_true(near(m.mean, 0.1) && m.half < 1e-12);  // both vary, and vary alike
    assert_true(own.half > 0.02 && near(margin.mean, m.mean) && near(below.mean, 0.1));
}

static void test_a_mean_over_cells_takes_those_that_are_named(void **state) {
    Fixture   *f = *state;
    CellFilter light = {.group = "4+4, light"}, narrow = {.key = "bandwidth", .value = 8},
               none = {.group = "6+2, light"};
    Mean m = comparison_over(&f->comparison, &light, "star", METRIC_SLA);
    assert_true(near(m.mean, 0.6) && near(m.sd, 0.01) && m.n == FIXTURE_SEEDS);
    assert_true(near(comparison_over(&f->comparison, &narrow, "plain", METRIC_SLA).mean, 0.15));
    assert_true(isnan(comparison_over(&f->comparison, &none, "star", METRIC_SLA).mean));
}

static void test_a_change_counts_cells_and_finds_extremes(void **state) {
    Fixture *f = *state;
    Change   x;
    assert_true(change_against(&f->comparison, NULL, METRIC_SLA, &x));
    assert_true(near(x.ours, 2.39 / 4) && near(x.theirs, 2.1 / 4));
    assert_true(near(x.by_seed.mean, (0.1 + 0 - 0.01 + 0.2) / 4));
    assert_true(x.ahead == 2 && x.even == 1 && x.behind == 1);
    assert_ptr_equal(x.worst_at, &f->cells[2]);
    assert_true(near(x.worst.mean, -0.01));
    assert_true(change_against(&f->comparison, "plain", METRIC_SLA, &x));
    assert_true(near(x.gain, 2) && x.gain_at == &f->cells[3]);
    assert_true(near(x.gain_theirs, 0.1) && near(x.gain_ours, 0.3));
    assert_true(change_against(&f->comparison, "clever", METRIC_SLA, &x));
    assert_true(near(x.gain, 0.7 / 0.6 - 1));  // a gain over nothing is no figure
    f->comparison.subject = "another";
    assert_false(change_against(&f->comparison, NULL, METRIC_SLA, &x));
}

static void test_ratios_are_paired_by_seed(void **state) {
    Fixture *f = *state;
    MetricId id = METRIC_JCT_MEAN_S;
    Mean     m = comparison_mean(&f->comparison, &f->cells[0], &f->entries[0][0], id);
    Mean     r = comparison_mean(&f->comparison, &f->cells[0], &f->entries[0][0], METRIC_JCT_RATIO);
    assert_true(fabs(m.mean - 600) < 1e-9 && m.half > 0);
    assert_true(fabs(r.mean - 3) < 1e-9 && r.half < 1e-9);
}

static void test_baselines_of_lower_metrics_are_the_lowest(void **state) {
    Fixture *f = *state;
    MetricId id = METRIC_JCT_MEAN_S;
    assert_string_equal(comparison_baseline(&f->comparison, &f->cells[0], id)->policy, "plain");
    f->comparison.fair_rank = 2;
    assert_string_equal(comparison_baseline(&f->comparison, &f->cells[0], id)->policy, "seer");
    assert_null(comparison_find(&f->cells[0], "absent"));
}

static void test_changes_of_ratios_go_over_cells(void **state) {
    Fixture *f = *state;
    MetricId id = METRIC_JCT_MEAN_S;
    Change   x;
    memcpy(f->entries[1], f->entries[0], sizeof f->entries[1]);
    f->cells[1] = f->cells[0];
    f->cells[1].entries = f->entries[1];
    f->entries[1][0].values = f->entries[0][1].values;
    f->comparison.n_cells = 2;
    assert_true(change_against(&f->comparison, "plain", id, &x));
    assert_true(fabs(x.best.mean + 2.0 / 3) < 1e-9 && fabs(x.worst.mean - 1.0 / 9) < 1e-9);
    assert_true(fabs(x.mean - (x.best.mean + x.worst.mean) / 2) < 1e-12);
    assert_true(x.best_at == &f->cells[0] && x.ahead == 1 && x.behind == 1 && x.even == 0);
    assert_false(change_against(&f->comparison, "star", id, &x));
    assert_false(change_against(&f->comparison, "absent", id, &x));
}

static void test_changes_of_means_are_against_the_subject(void **state) {
    Fixture *f = *state;
    Mean     gain = comparison_mean(&f->comparison, &f->cells[0], &f->entries[0][0], METRIC_GAIN);
    assert_true(near(gain.mean, 1) && isnan(gain.half));
}

static void test_every_metric_is_some_tier_s_and_keys_are_unique(void **state) {
    (void)state;
    for (MetricId id = 0; id < METRICS; id++) {
        bool any = false;
        for (Tier t = 0; t < TIERS; t++) any = any || metric_has(t, id);
        assert_true(any);
        for (MetricId k = 0; k < id; k++) assert_string_not_equal(metrics[id].key, metrics[k].key);
    }
    assert_int_equal(metric_headline(TIER_CLUSTER, 1), METRIC_MAKESPAN_S);
    assert_int_equal(metric_headline(TIER_CHIP, 1), METRICS);
    assert_int_equal(metric_delta_of(METRIC_QPS), METRICS);
}

#define CHIP(name)    cmocka_unit_test_setup_teardown(name, fixture_chip, fixture_end)
#define CLUSTER(name) cmocka_unit_test_setup_teardown(name, fixture_cluster, fixture_end)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        CHIP(test_the_best_baseline_is_told_no_more_and_is_not_the_subject),
        CHIP(test_differences_are_paired_by_seed),
        CHIP(test_a_mean_over_cells_takes_those_that_are_named),
        CHIP(test_a_change_counts_cells_and_finds_extremes),
        CLUSTER(test_ratios_are_paired_by_seed),
        CLUSTER(test_baselines_of_lower_metrics_are_the_lowest),
        CLUSTER(test_changes_of_ratios_go_over_cells),
        cmocka_unit_test_setup_teardown(test_changes_of_means_are_against_the_subject, fixture_node,
                                        fixture_end),
        cmocka_unit_test(test_every_metric_is_some_tier_s_and_keys_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
