// Csv: rows of separated text, cut in place; quoted fields, either line end, errors by line.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { CSV_FIELDS = 64 };

typedef struct Csv {
    const char *name;  // for errors
    char       *at, *end;
    char        sep;
    bool        quotes;      // "a field, with ""quotes"""; false: quotes are text like any other
    size_t      line, next;  // where the row begins, and where the one after it does
    uint32_t    n;
    char       *field[CSV_FIELDS];  // terminated; live as long as the text
} Csv;

// Cuts text[len] in place; text[len] must be ours too. Refuses bytes of zero, skips a byte order
// mark.
MUST_USE Err csv_open(Csv *c, const char *name, char *text, size_t len, char sep, bool quotes);
MUST_USE Err csv_next(Csv *c, bool *more);  // an empty line is a row of one empty field
bool         csv_blank(const Csv *c);       // nothing but line ends is left

void csv_put(FILE *f, const char *field);  // quoted where it has to be
