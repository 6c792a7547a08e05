// CompareArgs: the options that the compare commands of all tiers have in common, and their output.
#pragma once

#include "base/term.h"
#include "cli/args.h"
#include "result/comparison.h"

typedef struct CompareArgs {
    const char *policies, *page, *csv;
    int64_t     threads;
    bool        json;
} CompareArgs;

enum { COMPARE_ARG_ROWS = 5 };

// Sets the defaults and writes the rows, for the array that args_parse takes.
void compare_args_rows(CompareArgs *x, const char *example, ArgRow rows[COMPARE_ARG_ROWS]);

// Begins p where stderr is a terminal, and returns it; NULL elsewhere.
Progress *compare_args_progress(Progress *p, uint64_t steps);

// Writes the page and the CSV file, if named, then a table or a JSON document to stdout.
MUST_USE Err compare_args_write(const CompareArgs *x, const Comparison *c, const char *title,
                                Arena *a);
