// StrBuf: a string growing at the end of an arena. Overflow is remembered and reported at the end.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/tensor.h"

typedef struct StrBuf {  // nothing else may be allocated from the arena meanwhile
    Arena *arena;
    char  *at;
    size_t len, room, most;  // room: allocated so far; most: limit
    bool   full;
} StrBuf;

void str_buf_begin(StrBuf *s, Arena *a, size_t most);
void str_buf_put(StrBuf *s, const char *bytes, size_t n);
void str_buf_text(StrBuf *s, const char *text);
void str_buf_int(StrBuf *s, uint64_t x);
void str_buf_printf(StrBuf *s, const char *fmt, ...) PRINTF(2, 3);
// A quoted JSON string; NULL: null. Invalid UTF-8 becomes U+FFFD, control characters are escaped.
void str_buf_json(StrBuf *s, const char *text);
void str_buf_number(StrBuf *s, double x);  // shortest that reads back; null if not finite
// A Prometheus label value, escaped, without quotes.
void str_buf_label(StrBuf *s, const char *text);
// ERR_LIMIT: it did not fit, and its memory is released.
MUST_USE Err str_buf_end(StrBuf *s, Str *out);
