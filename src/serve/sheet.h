// Sheet: a text that grows at the end of an arena. What no longer fits is remembered, not fatal.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/tensor.h"

typedef struct Sheet {  // nothing else may take from the arena meanwhile
    Arena *arena;
    char  *at;
    size_t len, room, most;  // room: taken from the arena so far
    bool   full;
} Sheet;

void sheet_begin(Sheet *s, Arena *a, size_t most);
void sheet_put(Sheet *s, const char *bytes, size_t n);
void sheet_text(Sheet *s, const char *text);
void sheet_int(Sheet *s, uint64_t x);
void sheet_printf(Sheet *s, const char *fmt, ...) PRINTF(2, 3);
// A JSON string with its quotes; NULL: null. Broken UTF-8 becomes U+FFFD, controls are escaped.
void sheet_json(Sheet *s, const char *text);
void sheet_number(Sheet *s, double x);  // shortest that reads back; null when it is none
// A label's value as Prometheus wants it, without quotes.
void sheet_label(Sheet *s, const char *text);
// ERR_LIMIT when it did not fit; all of it was then given back.
MUST_USE Err sheet_end(Sheet *s, Str *out);
