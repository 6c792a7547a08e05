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

#include "report/match.h"
#include "tests/runner.h"

enum { TRACES = 3, CELLS = 4, ENTRIES = 4 };

static const char *const names[ENTRIES] = {"plain", "clever", "star", "oracle"};

// Shares in time by cell and policy; traces differ by one point each.
static const double shares[CELLS][ENTRIES] = {{0.40, 0.60, 0.70, 0.80},
                                              {0.20, 0.50, 0.50, 0.60},
                                              {0.90, 0.80, 0.89, 0.96},
                                              {0.10, 0.00, 0.30, 0.40}};

typedef struct Fixture {
    MatchRun   runs[CELLS][ENTRIES][TRACES];
    MatchEntry entries[CELLS][ENTRIES];
    MatchCell  cells[CELLS];
    MatchPoint sweep[4];
    Match      match;
    Arena      arena;
} Fixture;

static void fill_cell(Fixture *f, uint32_t c) {
    for (uint32_t e = 0; e < ENTRIES; e++) {
        for (uint32_t k = 0; k < TRACES; k++) {
            double sla = shares[c][e] + 0.01 * ((double)k - 1) * (shares[c][e] > 0);
            f->runs[c][e][k] = (MatchRun){.sla = sla,
                                          .slowdown = 2,
                                          .energy_mj = 100 + e,
                                          .request_mj = 0.5,
                                          .policy_share = 0.01,
                                          .bandwidth_use = 0.6,
                                          .unit_use = 0.7,
                                          .decision_us = 3,
                                          .measured_us = 7,
                                          .level_sla = {sla, sla, sla}};
        }
        f->entries[c][e] = (MatchEntry){.policy = names[e],
                                        .clairvoyant = e == 3,
                                        .paper = e == 1 ? NULL : "a paper",
                                        .runs = f->runs[c][e],
                                        .worst_tenant = "resnet50",
                                        .worst_sla = 0.25};
    }
    f->cells[c] = (MatchCell){
        "4+4",  c < 2 ? "light" : "heavy", c % 2 == 0 ? 0.5 : 1, c % 2 == 0 ? 16 : 8, f->entries[c],
        ENTRIES};
}

static int set_up(void **state) {
    static Fixture f;
    for (uint32_t c = 0; c < CELLS; c++) fill_cell(&f, c);
    for (uint32_t i = 0; i < 4; i++)
        f.sweep[i] = (MatchPoint){.hidden = i < 2 ? 16 : 64,
                                  .period_us = i % 2 == 0 ? 100 : 500,
                                  .sla = {.mean = 0.5},
                                  .share = {.mean = 0.004},
                                  .decision_us = {.mean = 2}};
    f.match = (Match){.champion = "star",
                      .about = "How <it> was run.",
                      .traces = TRACES,
                      .requests = 50,
                      .first_seed = 101,
                      .cells = f.cells,
                      .n_cells = CELLS};
    *state = &f;
    return arena_init(&f.arena, 1 << 24) == ERR_OK ? 0 : 1;
}

static int tear_down(void **state) {
    arena_finish(&((Fixture *)*state)->arena);
    return 0;
}

static bool near(double a, double b) { return fabs(a - b) < 1e-12; }

static void test_the_best_baseline_neither_sees_ahead_nor_is_the_champion(void **state) {
    const Fixture *f = *state;
    assert_string_equal(match_baseline(&f->match, &f->cells[0])->policy, "clever");
    assert_string_equal(match_baseline(&f->match, &f->cells[2])->policy, "plain");
    assert_string_equal(match_bound(&f->match, &f->cells[2])->policy, "oracle");
    Match m = f->match;
    m.champion = "nobody";
    assert_string_equal(match_baseline(&m, &f->cells[0])->policy, "star");
    assert_null(match_part(&f->match, &f->cells[0]));
    MatchEntry own[ENTRIES];
    MatchCell  cell = {.entries = own, .n_entries = ENTRIES};
    memcpy(own, f->entries[0], sizeof own);
    MatchEntry *clever = &own[match_find(&cell, "clever") - own];
    clever->of = "star";  // what is a part of the champion is no baseline of it
    assert_ptr_equal(match_part(&f->match, &cell), clever);
    assert_string_equal(match_baseline(&f->match, &cell)->policy, "plain");
    clever->of = "plain";
    assert_string_equal(match_baseline(&f->match, &cell)->policy, "clever");
    MatchCell bound = {.entries = &f->entries[0][3], .n_entries = 1};
    assert_null(match_baseline(&m, &bound));
}

static void test_margins_are_paired_by_trace(void **state) {
    const Fixture *f = *state;
    Mean           m = match_margin(&f->match, &f->entries[0][2], &f->entries[0][1]);
    assert_true(near(m.mean, 0.1) && m.half < 1e-12);  // both vary, and vary alike
    assert_true(match_mean(&f->match, &f->entries[0][2], offsetof(MatchRun, sla)).half > 0.02);
}

static void test_a_mean_over_cells_takes_those_asked_for(void **state) {
    const Fixture *f = *state;
    size_t         sla = offsetof(MatchRun, sla);
    MatchWhere     light = {NULL, "light", NAN, NAN}, narrow = {NULL, NULL, NAN, 8},
               none = {"6+2", NULL, NAN, NAN};
    Mean m = match_over(&f->match, &light, "star", sla);
    assert_true(near(m.mean, 0.6) && near(m.sd, 0.01) && m.n == TRACES);
    assert_true(near(match_over(&f->match, &narrow, "plain", sla).mean, 0.15));
    assert_true(isnan(match_over(&f->match, &none, "star", sla).mean));
}

static void test_the_verdict_counts_cells_and_finds_extremes(void **state) {
    Fixture     *f = *state;
    MatchVerdict v;
    assert_true(match_judge(&f->match, &f->arena, &v));
    assert_true(near(v.sla, 2.39 / 4) && near(v.baseline_sla, 2.1 / 4) &&
                near(v.bound_sla, 2.76 / 4));
    assert_true(near(v.margin.mean, (0.1 + 0 - 0.01 + 0.2) / 4));
    assert_int_equal(v.ahead, 2);
    assert_int_equal(v.even, 1);
    assert_int_equal(v.behind, 1);
    assert_ptr_equal(v.worst, &f->cells[2]);
    assert_true(near(v.worst_margin.mean, -0.01));
    assert_int_equal(v.n_rivals, 3);
    assert_string_equal(v.rivals[0].policy, "plain");
    assert_true(near(v.rivals[0].gain, 2) && v.rivals[0].at == &f->cells[3]);
    assert_true(near(v.rivals[0].theirs, 0.1) && near(v.rivals[0].our, 0.3));
    assert_true(near(v.rivals[1].gain, 0.7 / 0.6 - 1));  // what is infinite is no figure
    assert_true(v.rivals[2].clairvoyant);
}

static void test_without_champion_or_baseline_there_is_no_verdict(void **state) {
    Fixture     *f = *state;
    MatchVerdict v;
    Match        m = f->match;
    m.champion = "nobody";
    assert_false(match_judge(&m, &f->arena, &v));
    m.champion = "star";
    m.n_cells = 0;
    assert_false(match_judge(&m, &f->arena, &v));
    MatchCell alone = f->cells[0];
    alone.entries = &f->entries[0][2];
    alone.n_entries = 2;
    m.cells = &alone;
    m.n_cells = 1;
    assert_false(match_judge(&m, &f->arena, &v));
}

static void test_json_has_the_promised_form(void **state) {
    Fixture    *f = *state;
    json_t     *doc = NULL;
    const char *chip, *mix, *policy;
    double      load, bandwidth, sla, lo, hi, energy, share, decision;
    assert_int_equal(match_json(&f->match, &f->arena, &doc), ERR_OK);
    json_t *cell = json_array_get(json_object_get(doc, "cells"), 3);
    assert_int_equal(json_unpack(cell, "{s:s,s:s,s:F,s:F}", "chip", &chip, "mix", &mix, "load",
                                 &load, "bandwidth", &bandwidth),
                     0);
    assert_string_equal(chip, "4+4");
    assert_string_equal(mix, "heavy");
    assert_true(load == 1 && bandwidth == 8);
    json_t *entry = json_array_get(json_object_get(cell, "policies"), 2);
    assert_int_equal(json_unpack(entry, "{s:s,s:F,s:[FF],s:F,s:F,s:F}", "policy", &policy, "sla",
                                 &sla, "sla_ci", &lo, &hi, "energy_mj", &energy,
                                 "policy_energy_share", &share, "decision_us", &decision),
                     0);
    assert_string_equal(policy, "star");
    assert_true(near(sla, 0.3) && lo < 0.3 && hi > 0.3 && near(hi - sla, sla - lo));
    assert_true(energy == 102 && near(share, 0.01) && decision == 3);
    assert_null(json_object_get(entry, "measured_us"));
    assert_null(json_object_get(doc, "sweep"));
    json_t *gain = json_object_get(
        json_array_get(json_object_get(json_object_get(doc, "summary"), "rivals"), 0),
        "largest_gain");
    assert_true(near(json_real_value(gain), 2));
    json_decref(doc);
}

static void test_one_trace_gives_the_widest_interval(void **state) {
    Fixture *f = *state;
    json_t  *doc = NULL;
    double   lo, hi;
    Match    m = f->match;
    m.traces = 1;
    assert_int_equal(match_json(&m, &f->arena, &doc), ERR_OK);
    json_t *entry = json_array_get(
        json_object_get(json_array_get(json_object_get(doc, "cells"), 0), "policies"), 0);
    assert_int_equal(json_unpack(entry, "{s:[FF],s:n}", "sla_ci", &lo, &hi, "sla_half"), 0);
    assert_true(lo == 0 && hi == 1);
    json_decref(doc);
}

static char *printed(Fixture *f, const Match *m) {
    char  *text = NULL;
    size_t len = 0;
    FILE  *out = open_memstream(&text, &len);
    assert_int_equal(match_print(m, &f->arena, out), ERR_OK);
    (void)fclose(out);
    return text;
}

static void test_people_get_tables_and_a_verdict(void **state) {
    Fixture *f = *state;
    char    *text = printed(f, &f->match);
    assert_non_null(strstr(text, "4+4, heavy, load 1, 8 B/cycle\n"));
    assert_non_null(strstr(text, "oracle  sees the future"));
    assert_non_null(strstr(text, "clever  best baseline"));
    assert_non_null(strstr(text, "ahead in 2, even within the interval in 1, behind in 1"));
    assert_non_null(strstr(
        text, "over a published policy: +200 % over plain, from 10.0 % to 30.0 %, in 4+4, heavy"));
    assert_non_null(strstr(text, "The oracle, which sees the future, has 69.0 %"));
    assert_null(strstr(text, "hidden size"));
    free(text);
}

static void test_the_sweep_is_told_where_there_is_one(void **state) {
    Fixture *f = *state;
    json_t  *doc = NULL;
    Match    m = f->match;
    m.sweep = f->sweep;
    m.n_sweep = 4;
    m.sweep_about = "A sweep.";
    m.measured = true;
    char *text = printed(f, &m);
    assert_non_null(strstr(text, "hidden size"));
    assert_non_null(strstr(text, "0.400"));
    assert_non_null(strstr(text, "measured"));
    free(text);
    assert_int_equal(match_json(&m, &f->arena, &doc), ERR_OK);
    assert_int_equal(json_array_size(json_object_get(doc, "sweep")), 4);
    json_decref(doc);
}

static void test_the_page_has_the_figures(void **state) {
    Fixture *f = *state;
    Page     p;
    char    *text = NULL;
    size_t   len = 0;
    FILE    *out = open_memstream(&text, &len);
    Match    m = f->match;
    m.sweep = f->sweep;
    m.n_sweep = 4;
    m.sweep_about = "A sweep.";
    page_begin(&p, out, &f->arena, "match");
    assert_int_equal(match_page(&m, &f->arena, &p), ERR_OK);
    assert_int_equal(page_end(&p), ERR_OK);
    (void)fclose(out);
    assert_int_equal(p.n_charts, 1 + 2 + 2 + 1);  // workloads, bandwidth, load, energy
    assert_non_null(strstr(text, "How &lt;it&gt; was run."));
    assert_non_null(strstr(text, "<h2>Package 4+4</h2>"));
    assert_non_null(strstr(text, "Requests in time against bandwidth, 4+4, heavy"));
    assert_non_null(strstr(text, "\"label\":\"hidden size 64\""));
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        TEST(test_the_best_baseline_neither_sees_ahead_nor_is_the_champion),
        TEST(test_margins_are_paired_by_trace),
        TEST(test_a_mean_over_cells_takes_those_asked_for),
        TEST(test_the_verdict_counts_cells_and_finds_extremes),
        TEST(test_without_champion_or_baseline_there_is_no_verdict),
        TEST(test_json_has_the_promised_form),
        TEST(test_one_trace_gives_the_widest_interval),
        TEST(test_people_get_tables_and_a_verdict),
        TEST(test_the_sweep_is_told_where_there_is_one),
        TEST(test_the_page_has_the_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
