// The ONNX conformance suite: what passes, what is refused by name, what is wrong.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/term.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/suite.h"

static const char *const suites[] = {"node", "simple", "pytorch-operator", "pytorch-converted"};
enum { N_SUITES = sizeof suites / sizeof *suites, PATH_BYTES = 1024 };
static const char default_dir[] = "/usr/share/libonnx-testdata/data";

typedef struct Tally {
    const char *suite;
    int64_t     count[3];  // by Verdict
    json_t     *failures, *refusals;
} Tally;

typedef struct Options {
    bool        json, list;
    const char *suite, *test;
} Options;

static int is_case(const struct dirent *d) { return strncmp(d->d_name, "test_", 5) == 0; }

static void count_case(Tally *t, const char *name, Verdict v, bool list) {
    static const char *const names[] = {"passed", "refused", "FAILED"};
    t->count[v]++;
    if (v == VERDICT_FAILED) json_array_append_new(t->failures, json_string(name));
    if (v == VERDICT_REFUSED) json_array_append_new(t->refusals, json_string(name));
    if (list && v != VERDICT_PASSED) fprintf(stderr, "%-8s %s: %s\n", names[v], name, err_why());
}

static Err run_suite(const char *dir, const Options *o, Tally *t) {
    char            path[PATH_BYTES];
    struct dirent **cases = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", dir, t->suite);
    int n = scandir(path, &cases, is_case, alphasort);
    if (n < 0)
        return err_set(ERR_IO, "no suite at %s; install libonnx-testdata or name its folder", path);
    Progress p;
    progress_begin(&p, stderr, clock_monotonic(), t->suite, n);
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/%s", dir, t->suite, cases[i]->d_name);
        if (o->test == NULL || strstr(cases[i]->d_name, o->test) != NULL)
            count_case(t, cases[i]->d_name, suite_case(path), o->list);
        free(cases[i]);
        progress_step(&p, 1);
    }
    progress_end(&p);
    free(cases);
    return ERR_OK;
}

static int print_json(const Tally *tallies, uint32_t n) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(
            list, json_pack("{s:s,s:I,s:I,s:I,s:O,s:O}", "name", tallies[i].suite, "passed",
                            (json_int_t)tallies[i].count[VERDICT_PASSED], "refused",
                            (json_int_t)tallies[i].count[VERDICT_REFUSED], "failed",
                            (json_int_t)tallies[i].count[VERDICT_FAILED], "failures",
                            tallies[i].failures, "refusals", tallies[i].refusals));
    return command_json(json_pack("{s:o}", "suites", list));
}

static Err print_table(const Tally *tallies, uint32_t n) {
    static const Column cols[] = {
        {.key = "name", .head = "suite"},
        {.key = "passed", .head = "passed"},
        {.key = "refused", .head = "refused"},
        {.key = "failed", .head = "failed"},
    };
    Arena a = {0};
    TRY(arena_init(&a, 1 << 20));
    Table table;
    table_init(&table, &a, cols, 4);
    for (uint32_t i = 0; i < n; i++) {
        table_row(&table);
        table_text(&table, tallies[i].suite);
        for (int v = 0; v < 3; v++) table_int(&table, tallies[i].count[v]);
    }
    Err e = table_print(&table, stdout);
    arena_finish(&a);
    return e;
}

static Err run_suites(const char *dir, const Options *o, Tally *tallies, uint32_t *n) {
    for (uint32_t i = 0; i < N_SUITES; i++) {
        if (o->suite != NULL && strcmp(o->suite, suites[i]) != 0) continue;
        tallies[*n] = (Tally){suites[i], {0}, json_array(), json_array()};
        TRY(run_suite(dir, o, &tallies[(*n)++]));
    }
    return *n > 0 ? ERR_OK
                  : err_set(ERR_ARG,
                            "no suite '%s'; there are node, simple, "
                            "pytorch-operator and pytorch-converted",
                            o->suite);
}

int cmd_conformance(const Command *c, int argc, char **argv) {
    Options      o = {0};
    const ArgRow rows[] = {
        {"suite", ARG_TEXT, &o.suite, "NAME", "run only this suite", 0, 0},
        {"test", ARG_TEXT, &o.test, "TEXT", "run only tests whose name contains this", 0, 0},
        {"list", ARG_FLAG, &o.list, NULL, "name what was refused or failed, and why", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    const char *dir = default_dir;
    int         code = args_parse(c, rows, 4, argc, argv, &dir, 0, 1, NULL);
    if (code >= 0) return code;
    Tally    tallies[N_SUITES];
    uint32_t n = 0;
    int64_t  failed = 0;
    Err      e = run_suites(dir, &o, tallies, &n);
    for (uint32_t i = 0; i < n; i++) failed += tallies[i].count[VERDICT_FAILED];
    if (e == ERR_OK && o.json)
        code = print_json(tallies, n);
    else if (e == ERR_OK)
        e = print_table(tallies, n);
    for (uint32_t i = 0; i < n; i++) {
        json_decref(tallies[i].failures);
        json_decref(tallies[i].refusals);
    }
    if (e != ERR_OK) return command_failed(e);
    return code > 0 ? code : failed > 0 ? EXIT_FAILED : 0;
}
