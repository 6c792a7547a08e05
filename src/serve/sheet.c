#include "serve/sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void sheet_begin(Sheet *s, Arena *a, size_t most) {
    *s = (Sheet){.arena = a, .at = a->base + a->used, .most = most};
}

void sheet_put(Sheet *s, const char *bytes, size_t n) {
    if (s->full || n == 0) return;
    char *to = n <= s->most - s->len ? arena_try(s->arena, n, 1, 1) : NULL;
    if (to == NULL) {
        s->full = true;
        return;
    }
    memcpy(to, bytes, n);
    s->len += n;
}

void sheet_text(Sheet *s, const char *text) { sheet_put(s, text, strlen(text)); }

void sheet_printf(Sheet *s, const char *fmt, ...) {
    char    text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        s->full = true;
    else
        sheet_put(s, text, (size_t)n);
}

static void put_point(Sheet *s, uint32_t point, const char *bytes, size_t n) {
    static const char plain[] = "\"\\\n\r\t", code[] = "\"\\nrt";
    if (point == UTF8_BAD) {
        sheet_text(s, "\\ufffd");
        return;
    }
    const char *hit = point != 0 && point < 0x80 ? strchr(plain, (int)point) : NULL;
    if (hit != NULL)
        sheet_put(s, (char[]){'\\', code[hit - plain]}, 2);
    else if (utf8_control(point) && point < 0x10000)
        sheet_printf(s, "\\u%04x", (unsigned)point);
    else
        sheet_put(s, bytes, n);
}

void sheet_json(Sheet *s, const char *text) {
    if (text == NULL) {
        sheet_text(s, "null");
        return;
    }
    sheet_put(s, "\"", 1);
    for (const char *at = text, *end = text + strlen(text); at < end;) {
        const char *start = at;
        uint32_t    point = utf8_next(&at, end);
        put_point(s, point, start, (size_t)(at - start));
    }
    sheet_put(s, "\"", 1);
}

// The program never leaves the C locale, so the point is a point.
void sheet_number(Sheet *s, double x) {
    char text[40];
    if (!isfinite(x)) {
        sheet_text(s, "null");
        return;
    }
    for (int digits = 6; digits <= 17; digits += digits < 15 ? 9 : 2) {
        (void)snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    sheet_text(s, text);
}

void sheet_label(Sheet *s, const char *text) {
    for (const char *at = text, *end = text + strlen(text); at < end;) {
        const char *start = at;
        uint32_t    point = utf8_next(&at, end);
        if (point == '\n')
            sheet_text(s, "\\n");
        else if (point == '"' || point == '\\')
            sheet_put(s, (char[]){'\\', (char)point}, 2);
        else if (point == UTF8_BAD || utf8_control(point))
            sheet_text(s, "?");
        else
            sheet_put(s, start, (size_t)(at - start));
    }
}

Err sheet_end(Sheet *s, Str *out) {
    if (s->full) {
        arena_rewind(s->arena, (size_t)(s->at - s->arena->base));
        return err_set(ERR_LIMIT, "no room for a text of more than %zu bytes", s->len);
    }
    *out = (Str){s->at, s->len};
    return ERR_OK;
}
