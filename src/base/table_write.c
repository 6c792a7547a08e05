#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/table_row.h"
#include "base/utf8.h"

Err table_check(const Table *t) {
    return t->full ? err_set(ERR_LIMIT, "the table has more rows than memory for them") : ERR_OK;
}

Err table_written(FILE *f) {
    if (fflush(f) == 0 && !ferror(f)) return ERR_OK;
    return err_set(ERR_IO, "writing a table failed: %s", strerror(errno));
}

static void csv_text(FILE *f, const char *s) {
    size_t n = strlen(s);
    if (n > 0 && s[0] != ' ' && s[n - 1] != ' ' && strpbrk(s, ",\"\r\n") == NULL) {
        (void)fputs(s, f);
        return;
    }
    (void)fputc('"', f);
    for (; *s != '\0'; s++) {
        if (*s == '"') (void)fputc('"', f);
        (void)fputc(*s, f);
    }
    (void)fputc('"', f);
}

static void csv_real(FILE *f, double d) {  // the shortest digits that read back as d
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, d);
        if (strtod(text, NULL) == d) break;
    }
    (void)fputs(text, f);
}

static void csv_cell(FILE *f, const Cell *c) {
    if (c->kind == CELL_TEXT) csv_text(f, c->s);
    if (c->kind == CELL_INT) (void)fprintf(f, "%" PRId64, c->i);
    if (c->kind == CELL_REAL) csv_real(f, c->d);
}

Err table_csv(const Table *t, FILE *f) {
    TRY(table_check(t));
    for (uint32_t i = 0; i < t->n_cols; i++) {
        csv_text(f, t->cols[i].key);
        (void)fputs(i + 1 < t->n_cols ? "," : "\r\n", f);
    }
    for (const TableRow *r = t->first; r != NULL; r = r->next) {
        if (r->total) continue;
        for (uint32_t i = 0; i < t->n_cols; i++) {
            csv_cell(f, &r->cells[i]);
            (void)fputs(i + 1 < t->n_cols ? "," : "\r\n", f);
        }
    }
    return table_written(f);
}

static json_t *json_text(const char *s) {  // what is not UTF-8 becomes U+FFFD
    size_t n = strlen(s), used = 0;
    if (utf8_ok(s, n)) return json_stringn_nocheck(s, n);
    char *clean = malloc(3 * n);
    CHECK(clean != NULL);
    for (const char *at = s, *end = s + n; at < end;)
        used += utf8_put(utf8_next(&at, end), clean + used);
    json_t *text = json_stringn_nocheck(clean, used);
    free(clean);
    return text;
}

static json_t *json_cell(const Cell *c) {
    if (c->kind == CELL_TEXT) return json_text(c->s);
    if (c->kind == CELL_INT) return json_integer(c->i);
    if (c->kind == CELL_REAL && isfinite(c->d)) return json_real(c->d);
    return json_null();  // JSON has no word for infinity either
}

Err table_json(const Table *t, json_t **out) {
    TRY(table_check(t));
    json_t *rows = json_array();
    bool    ok = rows != NULL;
    for (const TableRow *r = t->first; ok && r != NULL; r = r->next) {
        if (r->total) continue;
        json_t *object = json_object();
        ok = object != NULL;
        for (uint32_t i = 0; ok && i < t->n_cols; i++)
            ok = json_object_set_new(object, t->cols[i].key, json_cell(&r->cells[i])) == 0;
        ok = json_array_append_new(rows, object) == 0 && ok;
    }
    if (!ok) {
        json_decref(rows);
        return err_set(ERR_LIMIT, "no memory for a table as JSON");
    }
    *out = rows;
    return ERR_OK;
}
