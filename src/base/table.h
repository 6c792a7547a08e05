// Table: rows of typed cells, printed as text or written as CSV or JSON.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"

typedef enum Align { ALIGN_AUTO, ALIGN_LEFT, ALIGN_RIGHT } Align;  // auto: numbers right, text left

typedef struct Column {
    const char *key;       // CSV header and JSON member; includes the unit
    const char *head;      // heading in text
    const char *unit;      // in brackets after head; may be NULL
    double      scale;     // text shows the number divided by this; 0: 1
    int         decimals;  // in text; CSV and JSON have full precision
    Align       align;
} Column;

typedef struct TableRow TableRow;

typedef struct Table {
    Arena        *arena;
    const Column *cols;  // [n_cols], borrowed
    TableRow     *first, *last;
    uint32_t      n_cols, n_rows, cell;  // cell: next one of the last row
    bool          full;                  // the arena ran out; an error when the table is written
} Table;

void table_init(Table *t, Arena *a, const Column *cols, uint32_t n_cols);
void table_row(Table *t);    // starts a row; cells follow in column order, the rest is missing
void table_total(Table *t);  // starts a row below a rule; in text only

void table_text(Table *t, const char *text);  // copied; NULL is missing
void table_textf(Table *t, const char *fmt, ...) PRINTF(2, 3);
void table_int(Table *t, int64_t number);
void table_real(Table *t, double number);
void table_missing(Table *t);

MUST_USE Err table_print(const Table *t, FILE *f);      // aligned; bold head on a terminal
MUST_USE Err table_csv(const Table *t, FILE *f);        // RFC 4180
MUST_USE Err table_json(const Table *t, json_t **out);  // an array of objects, owned by the caller

// For writers of other formats.
typedef enum TableCellKind { CELL_MISSING, CELL_TEXT, CELL_INT, CELL_REAL } TableCellKind;

typedef struct TableCell {
    TableCellKind kind;
    union {
        const char *s;
        int64_t     i;
        double      d;
    };
} TableCell;

struct TableRow {
    TableCell *cells;  // [n_cols]
    TableRow  *next;
    bool       total;
};

MUST_USE Err table_check(const Table *t);  // error if a row was lost
MUST_USE Err table_written(FILE *f);
