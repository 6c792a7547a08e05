#include "report/league.h"
#include "tests/runner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 3, ENTRIES = 5 };

static const char *const names[ENTRIES] = {"plain", "seer", "star", "star part=false", "absent"};
static const char *const knows[ENTRIES] = {"blind", "oracle", "predicted", "predicted", "blind"};
static const uint32_t    ranks[ENTRIES] = {0, 2, 1, 1, 0};
static const double jct[ENTRIES] = {300, 90, 100, 120, 0}, span[ENTRIES] = {900, 800, 1000, 990, 0};
static const double hours[] = {0.5, 1.5}, use[] = {80, 20}, queue[] = {3, 0}, times[] = {1, 2, 3};

typedef struct Fixture {
    LeagueRun   runs[ENTRIES][SEEDS];
    LeagueEntry entries[ENTRIES];
    LeagueCell  cell;
    League      league;
    Arena       arena;
} Fixture;

static int set_up(void **state) {
    static Fixture f;
    for (uint32_t e = 0; e < ENTRIES; e++) {
        for (uint32_t k = 0; k < SEEDS; k++)
            f.runs[e][k] = (LeagueRun){.jct_mean_s = jct[e] * (k + 1),
                                       .makespan_s = span[e] + k,
                                       .jobs = 40,
                                       .fairness = 0.5,
                                       .decision_us = NAN};
        f.entries[e] = (LeagueEntry){.policy = names[e],
                                     .knows = knows[e],
                                     .rank = ranks[e],
                                     .of = e == 3 ? "star" : NULL,
                                     .missing = e == 4 ? "it <cannot>" : NULL,
                                     .runs = f.runs[e],
                                     .curves = {times, hours, use, queue, 3, 2}};
    }
    f.cell = (LeagueCell){.trace = "t.csv",
                          .servers = "4",
                          .load = 0.8,
                          .n_servers = 4,
                          .gpus = 32,
                          .long_ones = 7,
                          .entries = f.entries,
                          .n_entries = ENTRIES};
    f.league = (League){
        .champion = "star", .seeds = SEEDS, .first_seed = 101, .cells = &f.cell, .n_cells = 1};
    *state = &f;
    return arena_init(&f.arena, 1 << 24) == ERR_OK ? 0 : 1;
}

static int tear_down(void **state) {
    arena_finish(&((Fixture *)*state)->arena);
    return 0;
}

static void ratios_go_seed_by_seed(void **state) {
    const Fixture *f = *state;
    size_t         at = offsetof(LeagueRun, jct_mean_s);
    Mean           m = league_mean(&f->league, &f->entries[0], at);
    Mean           r = league_ratio(&f->league, &f->entries[0], &f->entries[2], at);
    assert_true(fabs(m.mean - 600) < 1e-9 && m.half > 0);
    assert_true(fabs(r.mean - 3) < 1e-9 && r.half < 1e-9);
}

// Who knows more, is a part of it or takes no part is no rival.
static void rivals_know_no_more(void **state) {
    Fixture *f = *state;
    size_t   at = offsetof(LeagueRun, jct_mean_s);
    assert_string_equal(league_rival(&f->league, &f->cell, at)->policy, "plain");
    f->entries[2].rank = 2;
    assert_string_equal(league_rival(&f->league, &f->cell, at)->policy, "seer");
    f->league.champion = "nobody";
    assert_null(league_rival(&f->league, &f->cell, at));
    assert_null(league_find(&f->cell, "absent"));
}

static char *printed(Fixture *f, bool page) {
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    assert_non_null(out);
    if (page) {
        Page p;
        page_begin(&p, out, &f->arena, "title");
        assert_int_equal(league_page(&f->league, &f->arena, &p), ERR_OK);
        assert_int_equal(page_end(&p), ERR_OK);
    } else {
        assert_int_equal(league_print(&f->league, &f->arena, out), ERR_OK);
    }
    assert_int_equal(fclose(out), 0);
    return text;
}

static void has(const char *text, const char *what) {
    if (strstr(text, what) == NULL) fail_msg("lacks '%s':\n%s", what, text);
}

static void changes_go_over_cells(void **state) {
    Fixture     *f = *state;
    LeagueCell   cells[] = {f->cell, f->cell};
    LeagueEntry  swapped[ENTRIES];
    LeagueChange c;
    memcpy(swapped, f->entries, sizeof swapped);
    swapped[0].runs = f->runs[1];
    cells[1].entries = swapped;
    f->league.cells = cells;
    f->league.n_cells = 2;
    assert_true(league_change(&f->league, "plain", offsetof(LeagueRun, jct_mean_s), &c));
    assert_true(fabs(c.least + 2.0 / 3) < 1e-9 && fabs(c.most - 1.0 / 9) < 1e-9);
    assert_true(fabs(c.mean - (c.least + c.most) / 2) < 1e-12 && c.at == &cells[0]);
    assert_true(c.ahead == 1 && c.behind == 1 && c.even == 0);
    assert_false(league_change(&f->league, "star", offsetof(LeagueRun, jct_mean_s), &c));
    assert_false(league_change(&f->league, "absent", offsetof(LeagueRun, jct_mean_s), &c));
    char *text = printed(f, false);
    has(text, "star over all cells");
    has(text, "1, 0, 1");
    free(text);
}

static void people_read_it(void **state) {
    char *text = printed(*state, false);
    has(text, "t.csv on 4 servers with 32 GPUs, load 0.8; left out: 7 jobs too long, 0 too large");
    has(text, "star part=false");
    has(text, "without absent: it <cannot>");
    has(text, "JCT -66.7 +- 0.0 % against plain; makespan +11.1");
    has(text, "were not timed");
    assert_null(strstr(text, "decision ["));
    free(text);
}

static void pages_have_five_charts(void **state) {
    char       *text = printed(*state, true);
    const char *at = text;
    int         charts = 0;
    has(text, "it &lt;cannot&gt;");
    has(text, "GPUs in use over time");
    for (; (at = strstr(at, "<canvas")) != NULL; at++) charts++;
    assert_int_equal(charts, 5);
    free(text);
}

static void machines_read_it(void **state) {
    Fixture *f = *state;
    json_t  *doc = NULL;
    assert_int_equal(league_json(&f->league, &doc), ERR_OK);
    json_t *cell = json_array_get(json_object_get(doc, "cells"), 0);
    json_t *list = json_object_get(cell, "policies");
    assert_int_equal(json_array_size(list), 4);
    json_t *p = json_array_get(list, 0), *part = json_array_get(list, 3);
    json_t *ci = json_object_get(p, "jct_ci_s");
    double  mean = json_real_value(json_object_get(p, "jct_mean_s"));
    assert_true(json_real_value(json_array_get(ci, 0)) < mean);
    assert_true(json_real_value(json_array_get(ci, 1)) > mean);
    assert_true(json_is_null(json_object_get(p, "decision_us")));
    assert_int_equal(json_array_size(json_object_get(p, "seeds")), SEEDS);
    assert_string_equal(json_string_value(json_object_get(part, "part_of")), "star");
    assert_int_equal(json_array_size(json_object_get(cell, "missing")), 1);
    json_decref(doc);
}

static void one_seed_has_no_interval(void **state) {
    Fixture *f = *state;
    json_t  *doc = NULL;
    f->league.seeds = 1;
    char *text = printed(f, false);
    has(text, "JCT -66.7 % against plain");
    free(text);
    assert_int_equal(league_json(&f->league, &doc), ERR_OK);
    json_t *cell = json_array_get(json_object_get(doc, "cells"), 0);
    json_t *p = json_array_get(json_object_get(cell, "policies"), 0);
    assert_true(json_is_null(json_object_get(p, "jct_ci_s")));
    json_decref(doc);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ratios_go_seed_by_seed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rivals_know_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changes_go_over_cells, set_up, tear_down),
        cmocka_unit_test_setup_teardown(people_read_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pages_have_five_charts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(machines_read_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_seed_has_no_interval, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
