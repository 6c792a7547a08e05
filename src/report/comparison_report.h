// Report of a comparison: tables for people, a JSON document, a CSV file, an HTML page; for all
// tiers.
#pragma once

#include "report/page.h"
#include "result/change.h"

MUST_USE Err report_print(const Comparison *c, Arena *scratch, FILE *f);
MUST_USE Err report_json(const Comparison *c, json_t **out);            // *out is the caller's
MUST_USE Err report_csv(const Comparison *c, Arena *scratch, FILE *f);  // a row per cell and policy
MUST_USE Err report_page(const Comparison *c, Arena *scratch, Page *p);

// What follows is shared by the writers. comparison_tables.c:
void report_cell_table(const Comparison *c, const ComparisonCell *cell, Arena *a, Table *t);
bool report_cells_table(const Comparison *c, Arena *a, Table *t);     // false: nothing to compare
bool report_policies_table(const Comparison *c, Arena *a, Table *t);  // likewise
void report_sweep_table(const Comparison *c, Arena *a, Table *t);
// comparison_text.c; all return "" when there is nothing to say:
const char *report_legend(const Comparison *c, Arena *a);
const char *report_verdict(const Comparison *c, const ComparisonCell *cell, Arena *a);
const char *report_missing(const ComparisonCell *cell, Arena *a);
const char *report_summary(const Comparison *c, MetricId id, Arena *a);
