// StrBuf: a text that grows at the end of an arena. What no longer fits is remembered, not fatal.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/tensor.h"

typedef struct StrBuf {  // nothing else may take from the arena meanwhile
    Arena *arena;
    char  *at;
    size_t len, room, most;  // room: taken from the arena so far
    bool   full;
} StrBuf;

void str_buf_begin(StrBuf *s, Arena *a, size_t most);
void str_buf_put(StrBuf *s, const char *bytes, size_t n);
void str_buf_text(StrBuf *s, const char *text);
void str_buf_int(StrBuf *s, uint64_t x);
void str_buf_printf(StrBuf *s, const char *fmt, ...) PRINTF(2, 3);
// A JSON string with its quotes; NULL: null. Broken UTF-8 becomes U+FFFD, controls are escaped.
void str_buf_json(StrBuf *s, const char *text);
void str_buf_number(StrBuf *s, double x);  // shortest that reads back; null when it is none
// A label's value as Prometheus wants it, without quotes.
void str_buf_label(StrBuf *s, const char *text);
// ERR_LIMIT when it did not fit; all of it was then given back.
MUST_USE Err str_buf_end(StrBuf *s, Str *out);
