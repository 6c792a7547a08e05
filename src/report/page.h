// Page: a self-contained HTML page of text, tables and charts that loads nothing from the network.
#pragma once

#include <stdio.h>

#include "base/table.h"
#include "report/chart.h"

typedef struct Page {
    FILE    *out;
    Arena   *scratch;  // rewound after each part
    uint32_t n_charts;
} Page;

// Parts are written at once. Text is escaped; write errors are reported by page_end.
void         page_begin(Page *p, FILE *out, Arena *scratch, const char *title);
void         page_heading(Page *p, const char *text);
void         page_text(Page *p, const char *fmt, ...) PRINTF(2, 3);     // a paragraph
MUST_USE Err page_table(Page *p, const Table *t, const char *caption);  // caption may be NULL
MUST_USE Err page_chart(Page *p, const Chart *c);
MUST_USE Err page_end(Page *p);

// Files that pages embed, compiled into the program by tools/assets: Chart.js, page.js, page.css.
extern const unsigned char asset_chart_js[], asset_page_js[], asset_page_css[];
extern const size_t        asset_chart_js_bytes, asset_page_js_bytes, asset_page_css_bytes;
