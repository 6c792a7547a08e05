// Csv: a reader of separated values that splits its text in place; quoted fields, LF or CRLF.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { CSV_FIELDS = 192 };

typedef struct Csv {
    const char *name;  // for errors
    char       *at, *end;
    char        sep;
    bool        quotes;      // RFC 4180 quoting; false: quotes are ordinary text
    size_t      line, next;  // first line of the row, and of the next one
    uint32_t    n;
    char       *field[CSV_FIELDS];  // '\0'-terminated, in the text
} Csv;

// Splits text[len] in place; text[len] must be writable too. Rejects NUL bytes, skips a byte order
// mark.
MUST_USE Err csv_open(Csv *c, const char *name, char *text, size_t len, char sep, bool quotes);
MUST_USE Err csv_next(Csv *c, bool *more);  // an empty line is a row of one empty field
bool         csv_blank(const Csv *c);       // only line ends are left

void csv_put(FILE *f, const char *field);  // quoted if empty or if it has separators, quotes, line
                                           // ends or outer spaces
