// Table: columns declared once, rows appended, then printed for people or written for machines.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"

typedef enum Align { ALIGN_AUTO, ALIGN_LEFT, ALIGN_RIGHT } Align;  // auto: numbers right, text left

typedef struct Column {
    const char *key;       // for machines: CSV header and JSON member; names its unit
    const char *head;      // for people
    const char *unit;      // for people, after head in brackets; may be NULL
    double      scale;     // people see the number divided by this; 0 counts as 1
    int         decimals;  // people see so many; machines always get the whole number
    Align       align;
} Column;

typedef struct TableRow TableRow;

typedef struct Table {
    Arena        *arena;
    const Column *cols;  // [n_cols], borrowed
    TableRow     *first, *last;
    uint32_t      n_cols, n_rows, cell;  // cell: the next to fill in the last row
    bool          full;                  // the arena was; reported when the table is written
} Table;

void table_init(Table *t, Arena *a, const Column *cols, uint32_t n_cols);
void table_row(Table *t);    // starts a row; cells follow in the order of the columns, rest missing
void table_total(Table *t);  // starts a row below a rule, which machines do not get

void table_text(Table *t, const char *text);  // copied; NULL is missing
void table_textf(Table *t, const char *fmt, ...) PRINTF(2, 3);
void table_int(Table *t, int64_t number);
void table_real(Table *t, double number);
void table_missing(Table *t);

MUST_USE Err table_print(const Table *t, FILE *f);      // aligned; bold head on a terminal
MUST_USE Err table_csv(const Table *t, FILE *f);        // RFC 4180
MUST_USE Err table_json(const Table *t, json_t **out);  // an array of objects, the caller's

// TableRow: the cells of one row, shared by the printer and the writers.

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

MUST_USE Err table_check(const Table *t);  // was there room for every row?
MUST_USE Err table_written(FILE *f);
