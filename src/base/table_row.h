// TableRow: the cells of one row, shared by the printer and the writers.
#pragma once

#include <stdbool.h>

#include "base/table.h"

typedef enum CellKind { CELL_MISSING, CELL_TEXT, CELL_INT, CELL_REAL } CellKind;

typedef struct Cell {
    CellKind kind;
    union {
        const char *s;
        int64_t     i;
        double      d;
    };
} Cell;

struct TableRow {
    Cell     *cells;  // [n_cols]
    TableRow *next;
    bool      total;
};

MUST_USE Err table_check(const Table *t);  // was there room for every row?
MUST_USE Err table_written(FILE *f);
