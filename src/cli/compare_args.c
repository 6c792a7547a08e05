#include "cli/compare_args.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/term.h"
#include "report/comparison_report.h"

void compare_args_rows(CompareArgs *x, const char *example, ArgRow rows[COMPARE_ARG_ROWS]) {
    x->policies = "all";
    const ArgRow all[COMPARE_ARG_ROWS] = {
        {"policies", ARG_TEXT, &x->policies, "LIST", example, 0, 0},
        {"threads", ARG_INT, &x->threads, "N", "simulated runs at once (default: all cores)", 1,
         256},
        {"json", ARG_FLAG, &x->json, NULL, "one JSON document on stdout", 0, 0},
        {"csv", ARG_TEXT, &x->csv, "FILE", "a CSV file with a row per cell and policy", 0, 0},
        {"o", ARG_TEXT, &x->page, "FILE.html", "a page with the charts", 0, 0},
    };
    memcpy(rows, all, sizeof all);
}

Progress *compare_args_progress(Progress *p, uint64_t steps) {
    if (!term_is_tty(stderr)) return NULL;
    progress_begin(p, stderr, clock_monotonic(), "comparing", (int64_t)steps);
    return p;
}

static Err write_page(FILE *f, const Comparison *c, const char *title, Arena *a) {
    Page p;
    page_begin(&p, f, a, title);
    TRY(report_page(c, a, &p));
    return page_end(&p);
}

// title NULL: the CSV file.
static Err save(const char *path, const Comparison *c, const char *title, Arena *a) {
    AtomicFile f;
    if (path == NULL) return ERR_OK;
    TRY(file_begin(&f, path));
    Err e = title != NULL ? write_page(f.out, c, title, a) : report_csv(c, a, f.out);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

Err compare_args_write(const CompareArgs *x, const Comparison *c, const char *title, Arena *a) {
    json_t *doc = NULL;
    TRY(save(x->page, c, title, a));
    TRY(save(x->csv, c, NULL, a));
    if (!x->json) return report_print(c, a, stdout);
    TRY(report_json(c, &doc));
    Err e = json_write(stdout, doc);
    json_decref(doc);
    return e;
}
