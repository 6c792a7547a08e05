// The report of a comparison in all its forms, for the three tiers.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/report/comparison_fixture.h"
#include "tests/runner.h"

static bool near(double a, double b) { return fabs(a - b) < 1e-12; }

typedef enum Form { TEXT, CSV, PAGE } Form;

static char *written(Fixture *f, Form form) {
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    Page   p;
    assert_non_null(out);
    if (form == TEXT) assert_int_equal(report_print(&f->comparison, &f->arena, out), ERR_OK);
    if (form == CSV) assert_int_equal(report_csv(&f->comparison, &f->arena, out), ERR_OK);
    if (form == PAGE) {
        page_begin(&p, out, &f->arena, "title");
        assert_int_equal(report_page(&f->comparison, &f->arena, &p), ERR_OK);
        assert_int_equal(page_end(&p), ERR_OK);
    }
    assert_int_equal(fclose(out), 0);
    return text;
}

static void has(Fixture *f, Form form, const char *const *parts) {
    char *text = written(f, form);
    for (; *parts != NULL; parts++)
        if (strstr(text, *parts) == NULL) fail_msg("lacks '%s':\n%s", *parts, text);
    free(text);
}

#define HAS(f, form, ...) has(f, form, (const char *const[]){__VA_ARGS__, NULL})

static int charts(Fixture *f) {
    char       *text = written(f, PAGE);
    const char *at = text;
    int         n = 0;
    for (; (at = strstr(at, "<canvas")) != NULL; at++) n++;
    free(text);
    return n;
}

static json_t *document(Fixture *f) {
    json_t *doc = NULL;
    assert_int_equal(report_json(&f->comparison, &doc), ERR_OK);
    return doc;
}

static json_t *policy_of(json_t *doc, const char *cells, size_t cell, size_t policy) {
    json_t *at = json_array_get(json_object_get(doc, cells), cell);
    return json_array_get(json_object_get(at, "policies"), policy);
}

static double real_of(json_t *o, const char *key) {
    return json_real_value(json_object_get(o, key));
}

static void test_chip_json_has_the_promised_form(void **state) {
    json_t     *doc = document(*state), *cell = json_array_get(json_object_get(doc, "cells"), 3);
    json_t     *e = policy_of(doc, "cells", 3, 2);
    const char *chip, *mix, *policy, *base;
    double      load, bandwidth, sla, lo, hi, energy, share, decision;
    assert_int_equal(json_unpack(cell, "{s:s,s:s,s:F,s:F,s:s}", "chip", &chip, "mix", &mix, "load",
                                 &load, "bandwidth", &bandwidth, "best_baseline", &base),
                     0);
    assert_string_equal(chip, "4+4");
    assert_string_equal(mix, "heavy");
    assert_string_equal(base, "plain");
    assert_true(load == 1 && bandwidth == 8);
    assert_int_equal(json_unpack(e, "{s:s,s:F,s:[FF],s:F,s:F,s:F}", "policy", &policy, "sla", &sla,
                                 "sla_ci", &lo, &hi, "energy_mj", &energy, "policy_energy_share",
                                 &share, "decision_us", &decision),
                     0);
    assert_string_equal(policy, "star");
    assert_true(near(sla, 0.3) && lo < 0.3 && hi > 0.3 && near(hi - sla, sla - lo));
    assert_true(energy == 102 && near(share, 0.01) && decision == 3);
    assert_null(json_object_get(e, "measured_us"));
    assert_int_equal(json_array_size(json_object_get(e, "level_sla")), 3);
    assert_null(json_object_get(doc, "sweep"));
    json_t *summary = json_object_get(doc, "summary");
    json_t *plain = json_array_get(json_object_get(summary, "rivals"), 0);
    assert_true(near(real_of(summary, "oracle_sla"), 2.76 / 4));
    assert_true(near(real_of(plain, "largest_gain"), 2));
    assert_int_equal(json_array_size(json_object_get(summary, "rivals")), 3);
    json_decref(doc);
}

static void test_without_the_subject_there_is_no_summary(void **state) {
    Fixture *f = *state;
    f->comparison.subject = "another";
    json_t *doc = document(f);
    assert_true(json_is_null(json_object_get(doc, "summary")));
    json_decref(doc);
}

static void test_one_seed_gives_the_widest_interval_of_a_share(void **state) {
    Fixture *f = *state;
    double   lo, hi;
    f->comparison.seeds = 1;
    json_t *doc = document(f);
    assert_int_equal(
        json_unpack(policy_of(doc, "cells", 0, 0), "{s:[FF],s:n}", "sla_ci", &lo, &hi, "sla_half"),
        0);
    assert_true(lo == 0 && hi == 1);
    json_decref(doc);
}

static void test_chip_tables_have_a_cell_each_and_a_summary(void **state) {
    Fixture *f = *state;
    HAS(f, TEXT, "4+4, heavy, load 1, 8 B/cycle\n", "oracle  sees the future",
        "clever  best baseline", "ahead in 2, even within the interval in 1, behind in 1",
        "over a published policy: +200 % over plain, from 10.0 % to 30.0 %, in 4+4, heavy",
        "The oracle, which sees the future, has 69.0 %", "star against each policy",
        "measured: time of one decision on this machine");
    char *text = written(f, TEXT);
    assert_null(strstr(text, "hidden size"));
    assert_null(strstr(text, "per request"));  // a column without a value
    free(text);
}

static void test_the_sweep_is_reported(void **state) {
    Fixture *f = *state;
    f->comparison.sweep = f->sweep;
    f->comparison.n_sweep = 4;
    f->comparison.sweep_about = "A sweep.";
    f->comparison.timed = true;
    HAS(f, TEXT, "hidden size", "0.400", "measured");
    HAS(f, PAGE, "\"label\":\"hidden size 64\"", "How &lt;it&gt; was run.",
        "in time against bandwidth, 4+4, heavy", "<h2>4+4, heavy, load 1, 8 B/cycle</h2>");
    assert_int_equal(charts(f), 1 + 2 + 2 + 1);  // workloads, load, bandwidth, energy
    json_t *doc = document(f);
    assert_int_equal(json_array_size(json_object_get(doc, "sweep")), 4);
    assert_true(real_of(policy_of(doc, "cells", 0, 0), "measured_us") == 7);
    json_decref(doc);
}

static void test_csv_has_a_row_per_cell_and_policy(void **state) {
    Fixture *f = *state;
    HAS(f, CSV, "chip,mix,load,bandwidth,policy,role,knows,part_of,sla,sla_half,margin",
        "4+4,heavy,1,8,clever,");
    char *text = written(f, CSV);
    int   rows = 0;
    for (const char *at = text; *at != '\0'; at++) rows += *at == '\n';
    assert_int_equal(rows, 1 + FIXTURE_CELLS * 4);
    free(text);
}

static void test_cluster_json_has_the_promised_form(void **state) {
    json_t *doc = document(*state), *cell = json_array_get(json_object_get(doc, "cells"), 0);
    json_t *p = policy_of(doc, "cells", 0, 0), *part = policy_of(doc, "cells", 0, 3);
    json_t *ci = json_object_get(p, "jct_ci_s"), *left = json_object_get(cell, "left_out");
    assert_string_equal(json_string_value(json_object_get(doc, "champion")), "star");
    assert_int_equal(json_integer_value(json_object_get(cell, "gpus")), 32);
    assert_int_equal(json_integer_value(json_object_get(left, "too_long")), 7);
    assert_string_equal(json_string_value(json_object_get(p, "knows")), "blind");
    assert_true(fabs(real_of(p, "jct_ratio") - 3) < 1e-9);
    assert_true(json_real_value(json_array_get(ci, 0)) < real_of(p, "jct_mean_s"));
    assert_true(json_real_value(json_array_get(ci, 1)) > real_of(p, "jct_mean_s"));
    assert_true(json_is_null(json_object_get(p, "decision_us")));
    json_t *seeds = json_object_get(p, "seeds");
    assert_int_equal(json_array_size(seeds), FIXTURE_SEEDS);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(seeds, 0), "jobs")), 40);
    assert_string_equal(json_string_value(json_object_get(part, "part_of")), "star");
    assert_int_equal(json_array_size(json_object_get(cell, "missing")), 1);
    assert_int_equal(json_array_size(json_object_get(doc, "summary")), 3);
    json_decref(doc);
}

static void test_cluster_tables_name_what_is_missing(void **state) {
    Fixture *f = *state;
    HAS(f, TEXT, "t.csv on 4 servers\n", "star part=false", "without absent: it <cannot>",
        "JCT -66.7 +- 0.0 % against plain; makespan +11.1", "were not timed");
    char *text = written(f, TEXT);
    assert_null(strstr(text, "decision ["));
    free(text);
}

static void test_cluster_pages_have_five_charts(void **state) {
    Fixture *f = *state;
    HAS(f, PAGE, "it &lt;cannot&gt;", "GPUs in use over time");
    assert_int_equal(charts(f), 5);
}

static void test_one_seed_has_no_interval(void **state) {
    Fixture *f = *state;
    f->comparison.seeds = 1;
    HAS(f, TEXT, "JCT -66.7 % against plain");
    json_t *doc = document(f);
    assert_true(json_is_null(json_object_get(policy_of(doc, "cells", 0, 0), "jct_ci_s")));
    json_decref(doc);
}

static void test_node_json_has_the_promised_form(void **state) {
    json_t     *doc = document(*state), *p = policy_of(doc, "mixes", 0, 0);
    json_t     *equal = json_object_get(p, "equal_load");
    const char *machine, *of;
    double      qps, ci, mean, p99, share, rate, ms;
    assert_int_equal(json_unpack(doc, "{s:s}", "machine", &machine), 0);
    assert_int_equal(json_unpack(p, "{s:F,s:F,s:F,s:F}", "qps", &qps, "qps_ci", &ci, "mean_ms",
                                 &mean, "p99_ms", &p99),
                     0);
    assert_string_equal(machine, "a machine");
    assert_true(near(qps, 200) && ci > 0 && mean == 2 && p99 == 4);
    assert_int_equal(json_array_size(equal), 2);
    assert_int_equal(json_unpack(json_array_get(equal, 1), "{s:s,s:F,s:F,s:F}", "of", &of, "share",
                                 &share, "qps", &rate, "mean_ms", &ms),
                     0);
    assert_string_equal(of, "base");
    assert_true(share == 1 && rate == 100 && ms == 2);
    json_t *heavy = policy_of(doc, "mixes", 1, 1);
    assert_int_equal(json_array_size(json_object_get(heavy, "equal_load")), 0);
    assert_null(json_object_get(p, "gain"));
    json_decref(doc);
}

static void test_node_tables_have_values_and_changes(void **state) {
    Fixture *f = *state;
    HAS(f, TEXT, "200.0", " 100 ", "-50", "base    baseline");
    HAS(f, PAGE, "<h2>light</h2>", "<h2>heavy</h2>", "two networks", "Machine: a machine.");
    assert_int_equal(charts(f), 1 + 4 + 3);  // both mixes; bars, curves; heavy has no equal load
}

#define CHIP(name)    cmocka_unit_test_setup_teardown(name, fixture_chip, fixture_end)
#define CLUSTER(name) cmocka_unit_test_setup_teardown(name, fixture_cluster, fixture_end)
#define NODE(name)    cmocka_unit_test_setup_teardown(name, fixture_node, fixture_end)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        CHIP(test_chip_json_has_the_promised_form),
        CHIP(test_without_the_subject_there_is_no_summary),
        CHIP(test_one_seed_gives_the_widest_interval_of_a_share),
        CHIP(test_chip_tables_have_a_cell_each_and_a_summary),
        CHIP(test_the_sweep_is_reported),
        CHIP(test_csv_has_a_row_per_cell_and_policy),
        CLUSTER(test_cluster_json_has_the_promised_form),
        CLUSTER(test_cluster_tables_name_what_is_missing),
        CLUSTER(test_cluster_pages_have_five_charts),
        CLUSTER(test_one_seed_has_no_interval),
        NODE(test_node_json_has_the_promised_form),
        NODE(test_node_tables_have_values_and_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
