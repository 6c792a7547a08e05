#include "base/str_buf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { STEP_BYTES = 4096 };

void str_buf_begin(StrBuf *s, Arena *a, size_t most) {
    *s = (StrBuf){.arena = a, .at = a->base + a->used, .most = most};
}

// Allocates in steps of STEP_BYTES, so that short writes are cheap.
static bool has_room(StrBuf *s, size_t n) {
    if (n <= s->room - s->len) return true;
    size_t want = n > STEP_BYTES ? n : STEP_BYTES;
    if (want > s->most - s->room) want = s->most - s->room;
    if (want > s->arena->cap - s->arena->used) want = s->arena->cap - s->arena->used;
    if (s->full || n > s->room - s->len + want || arena_try(s->arena, want, 1, 1) == NULL)
        s->full = true;
    else
        s->room += want;
    return !s->full;
}

void str_buf_put(StrBuf *s, const char *bytes, size_t n) {
    if (s->full || !has_room(s, n)) return;
    memcpy(s->at + s->len, bytes, n);
    s->len += n;
}

void str_buf_text(StrBuf *s, const char *text) { str_buf_put(s, text, strlen(text)); }

void str_buf_printf(StrBuf *s, const char *fmt, ...) {
    char    text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        s->full = true;
    else
        str_buf_put(s, text, (size_t)n);
}

static void put_point(StrBuf *s, uint32_t point, const char *bytes, size_t n) {
    static const char plain[] = "\"\\\n\r\t", code[] = "\"\\nrt";
    if (point == UTF8_BAD) {
        str_buf_text(s, "\\ufffd");
        return;
    }
    const char *hit = point != 0 && point < 0x80 ? strchr(plain, (int)point) : NULL;
    if (hit != NULL)
        str_buf_put(s, (char[]){'\\', code[hit - plain]}, 2);
    else if (utf8_control(point) && point < 0x10000)
        str_buf_printf(s, "\\u%04x", (unsigned)point);
    else
        str_buf_put(s, bytes, n);
}

void str_buf_json(StrBuf *s, const char *text) {
    if (text == NULL) {
        str_buf_text(s, "null");
        return;
    }
    str_buf_put(s, "\"", 1);
    for (const char *at = text, *end = text + strlen(text); at < end;) {
        const char *start = at;
        uint32_t    point = utf8_next(&at, end);
        put_point(s, point, start, (size_t)(at - start));
    }
    str_buf_put(s, "\"", 1);
}

void str_buf_int(StrBuf *s, uint64_t x) {
    char  text[24];
    char *at = text + sizeof text;
    do *--at = (char)('0' + x % 10);
    while ((x /= 10) > 0);
    str_buf_put(s, at, (size_t)(text + sizeof text - at));
}

// The program stays in the C locale, so the decimal point is '.'.
void str_buf_number(StrBuf *s, double x) {
    char text[40];
    if (!isfinite(x)) {
        str_buf_text(s, "null");
        return;
    }
    if (x >= 0 && x < 1e15 && x == floor(x)) {
        str_buf_int(s, (uint64_t)x);
        return;
    }
    for (int digits = 6; digits <= 17; digits += digits < 15 ? 9 : 2) {
        (void)snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    str_buf_text(s, text);
}

static bool is_plain(const char *text) {
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\') return false;
    return true;
}

void str_buf_label(StrBuf *s, const char *text) {
    if (is_plain(text)) {
        str_buf_text(s, text);
        return;
    }
    for (const char *at = text, *end = text + strlen(text); at < end;) {
        const char *start = at;
        uint32_t    point = utf8_next(&at, end);
        if (point == '\n')
            str_buf_text(s, "\\n");
        else if (point == '"' || point == '\\')
            str_buf_put(s, (char[]){'\\', (char)point}, 2);
        else if (point == UTF8_BAD || utf8_control(point))
            str_buf_text(s, "?");
        else
            str_buf_put(s, start, (size_t)(at - start));
    }
}

Err str_buf_end(StrBuf *s, Str *out) {
    size_t start = (size_t)(s->at - s->arena->base);
    arena_rewind(s->arena, start + (s->full ? 0 : s->len));
    if (s->full) return err_set(ERR_LIMIT, "text exceeds %zu bytes", s->len);
    *out = (Str){s->at, s->len};
    return ERR_OK;
}
