#include "base/csv.h"

#include <string.h>

Err csv_open(Csv *c, const char *name, char *text, size_t len, char sep, bool quotes) {
    const char *nul = memchr(text, '\0', len);
    if (nul != NULL) {
        size_t line = 1;
        for (const char *p = text; p < nul; p++) line += *p == '\n';
        return err_set(ERR_PARSE, "%s:%zu: NUL byte; this is not a text file", name, line);
    }
    *c = (Csv){.name = name, .at = text, .end = text + len, .sep = sep, .quotes = quotes};
    c->next = 1;
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) c->at += 3;
    return ERR_OK;
}

bool csv_blank(const Csv *c) {
    const char *p = c->at;
    while (p < c->end && (*p == '\n' || *p == '\r')) p++;
    return p == c->end;
}

// Unquotes the field at p in place; returns the end of the field, or NULL if it is not closed.
static char *unquote(Csv *c, char *p) {
    char *to = p++;
    for (; p < c->end; p++) {
        if (*p == '"' && p + 1 < c->end && p[1] == '"')
            p++;
        else if (*p == '"')
            break;
        c->next += *p == '\n';
        *to++ = *p;
    }
    if (p >= c->end) return NULL;
    *to = '\0';
    return p + 1;
}

static bool line_ends(const Csv *c, const char *p) {
    return p >= c->end || *p == '\n' || (*p == '\r' && (p + 1 == c->end || p[1] == '\n'));
}

// Splits off one field; *last if it ends the row.
static Err next_field(Csv *c, bool *last) {
    char *p = c->at;
    bool  quoted = c->quotes && p < c->end && *p == '"';
    c->field[c->n++] = p;
    if (quoted) {
        p = unquote(c, p);
        if (p == NULL)
            return err_set(ERR_PARSE, "%s:%zu: quoted field is not closed", c->name, c->line);
        if (!line_ends(c, p) && *p != c->sep)
            return err_set(
                ERR_PARSE,
                "%s:%zu: text after a closing quote; write a quote inside a field as \"\"", c->name,
                c->line);
    }
    while (p < c->end && *p != c->sep && *p != '\n') p++;
    *last = p >= c->end || *p == '\n';
    if (!quoted) *(*last && p > c->at && p[-1] == '\r' ? p - 1 : p) = '\0';
    c->at = p < c->end ? p + 1 : p;
    c->next += *last;
    return ERR_OK;
}

Err csv_next(Csv *c, bool *more) {
    *more = c->at < c->end;
    if (!*more) return ERR_OK;
    c->line = c->next;
    c->n = 0;
    for (bool last = false; !last;) {
        if (c->n == CSV_FIELDS)
            return err_set(ERR_PARSE, "%s:%zu: more than %d fields", c->name, c->line, CSV_FIELDS);
        TRY(next_field(c, &last));
    }
    return ERR_OK;
}

void csv_put(FILE *f, const char *field) {
    size_t n = strlen(field);
    if (n > 0 && field[0] != ' ' && field[n - 1] != ' ' && strpbrk(field, ",\"\r\n") == NULL) {
        (void)fputs(field, f);
        return;
    }
    (void)fputc('"', f);
    for (; *field != '\0'; field++) {
        if (*field == '"') (void)fputc('"', f);
        (void)fputc(*field, f);
    }
    (void)fputc('"', f);
}
