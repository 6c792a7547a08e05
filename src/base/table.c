#include "base/table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/csv.h"
#include "base/term.h"
#include "base/utf8.h"

void table_init(Table *t, Arena *a, const Column *cols, uint32_t n_cols) {
    CHECK(n_cols > 0);
    *t = (Table){.arena = a, .cols = cols, .n_cols = n_cols};
}

static void add_row(Table *t, bool total) {
    size_t    mark = t->arena->used;
    TableRow *r = arena_try_new(t->arena, TableRow, 1);
    if (r != NULL) r->cells = arena_try_new(t->arena, TableCell, t->n_cols);
    if (r == NULL || r->cells == NULL) {
        arena_rewind(t->arena, mark);
        t->full = true;
        return;
    }
    r->total = total;
    if (t->last != NULL) t->last->next = r;
    if (t->first == NULL) t->first = r;
    t->last = r;
    t->n_rows++;
    t->cell = 0;
}

void table_row(Table *t) { add_row(t, false); }
void table_total(Table *t) { add_row(t, true); }

static void add_cell(Table *t, TableCell c) {
    if (t->full) return;
    CHECK(t->last != NULL && t->cell < t->n_cols);
    t->last->cells[t->cell++] = c;
}

void table_int(Table *t, int64_t number) {
    add_cell(t, (TableCell){.kind = CELL_INT, .i = number});
}
void table_real(Table *t, double number) {
    add_cell(t, (TableCell){.kind = CELL_REAL, .d = number});
}
void table_missing(Table *t) { add_cell(t, (TableCell){.kind = CELL_MISSING}); }

void table_text(Table *t, const char *text) {
    if (text == NULL) {
        table_missing(t);
        return;
    }
    size_t n = strlen(text) + 1;
    char  *copy = arena_try_new(t->arena, char, n);
    if (copy == NULL)
        t->full = true;
    else
        add_cell(t, (TableCell){.kind = CELL_TEXT, .s = memcpy(copy, text, n)});
}

void table_textf(Table *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = arena_try_vprintf(t->arena, fmt, ap);
    va_end(ap);
    if (text == NULL)
        t->full = true;
    else
        add_cell(t, (TableCell){.kind = CELL_TEXT, .s = text});
}

// Writes text with control characters escaped and returns its width; f NULL: measures only.
static uint32_t show_text(FILE *f, const char *s) {
    uint32_t columns = 0;
    for (const char *end = s + strlen(s), *at = s; at < end;) {
        const char *start = at;
        uint32_t    point = utf8_next(&at, end);
        if (point == UTF8_BAD || utf8_control(point)) {
            int hex =
                snprintf(NULL, 0, "\\x%02x", point == UTF8_BAD ? (unsigned char)*start : point);
            columns += (uint32_t)hex;
            if (f != NULL)
                (void)fprintf(f, "\\x%02x", point == UTF8_BAD ? (unsigned char)*start : point);
        } else {
            columns += utf8_width(point);
            if (f != NULL) (void)fwrite(start, 1, (size_t)(at - start), f);
        }
    }
    return columns;
}

static uint32_t show_cell(FILE *f, const Table *t, const TableRow *r, uint32_t at) {
    const Column    *col = &t->cols[at];
    const TableCell *c = &r->cells[at];
    char             text[400] = "";  // a double has up to 309 digits before the point
    double           scale = col->scale != 0 ? col->scale : 1;
    int              decimals = col->decimals < 0 ? 0 : col->decimals > 60 ? 60 : col->decimals;
    if (c->kind == CELL_TEXT) return show_text(f, c->s);
    if (c->kind == CELL_INT && scale == 1)
        (void)snprintf(text, sizeof text, "%" PRId64, c->i);
    else if (c->kind != CELL_MISSING)
        (void)snprintf(text, sizeof text, "%.*f", decimals,
                       (c->kind == CELL_INT ? (double)c->i : c->d) / scale);
    return show_text(f, c->kind != CELL_MISSING ? text : r->total ? "" : "-");
}

static uint32_t show_head(FILE *f, const Column *col) {
    uint32_t columns = show_text(f, col->head);
    if (col->unit == NULL) return columns;
    return columns + show_text(f, " [") + show_text(f, col->unit) + show_text(f, "]");
}

typedef struct Layout {
    uint32_t width;
    bool     right;
} Layout;

static void spaces(FILE *f, uint32_t n) {
    if (n > 0) (void)fprintf(f, "%*s", (int)n, "");
}

static Layout *measure(const Table *t, Arena *a) {
    Layout *l = arena_try_new(a, Layout, t->n_cols);
    for (uint32_t i = 0; l != NULL && i < t->n_cols; i++) {
        l[i].width = show_head(NULL, &t->cols[i]);
        bool number = false, text = false;
        for (const TableRow *r = t->first; r != NULL; r = r->next) {
            uint32_t w = show_cell(NULL, t, r, i);
            if (w > l[i].width) l[i].width = w;
            number |= r->cells[i].kind == CELL_INT || r->cells[i].kind == CELL_REAL;
            text |= r->cells[i].kind == CELL_TEXT;
        }
        Align align = t->cols[i].align;
        l[i].right = align == ALIGN_RIGHT || (align == ALIGN_AUTO && number && !text);
    }
    return l;
}

// r NULL: the heading. Padding is written before the next cell, so that no line ends in spaces.
static void print_row(const Table *t, const Layout *l, const TableRow *r, FILE *f) {
    uint32_t owed = 0;
    for (uint32_t i = 0; i < t->n_cols; i++) {
        uint32_t width = r != NULL ? show_cell(NULL, t, r, i) : show_head(NULL, &t->cols[i]);
        uint32_t pad = l[i].width - width;
        if (l[i].right) owed += pad;
        if (width > 0) {
            spaces(f, owed);
            (void)(r != NULL ? show_cell(f, t, r, i) : show_head(f, &t->cols[i]));
            owed = 0;
        }
        owed += l[i].right ? 2 : pad + 2;
    }
}

static void print_rule(const Table *t, const Layout *l, FILE *f) {
    for (uint32_t i = 0; i < t->n_cols; i++) {
        for (uint32_t k = 0; k < l[i].width; k++) (void)fputc('-', f);
        (void)fputs(i + 1 < t->n_cols ? "  " : "\n", f);
    }
}

Err table_print(const Table *t, FILE *f) {
    TRY(table_check(t));
    Arena scratch;
    TRY(arena_init(&scratch, (size_t)t->n_cols * sizeof(Layout)));
    Layout *l = measure(t, &scratch);
    bool    bold = term_has_colour(f), totals = false;
    if (bold) (void)fputs("\033[1m", f);
    print_row(t, l, NULL, f);
    (void)fputs(bold ? "\033[0m\n" : "\n", f);
    for (const TableRow *r = t->first; r != NULL; r = r->next) {
        if (r->total && !totals) print_rule(t, l, f);
        totals = r->total;
        print_row(t, l, r, f);
        (void)fputc('\n', f);
    }
    arena_finish(&scratch);
    return table_written(f);
}

Err table_check(const Table *t) {
    return t->full ? err_set(ERR_LIMIT, "the table has more rows than memory for them") : ERR_OK;
}

Err table_written(FILE *f) {
    if (fflush(f) == 0 && !ferror(f)) return ERR_OK;
    return err_set(ERR_IO, "writing a table failed: %s", strerror(errno));
}

static void csv_real(FILE *f, double d) {  // the fewest digits that read back as d
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, d);
        if (strtod(text, NULL) == d) break;
    }
    (void)fputs(text, f);
}

static void csv_cell(FILE *f, const TableCell *c) {
    if (c->kind == CELL_TEXT) csv_put(f, c->s);
    if (c->kind == CELL_INT) (void)fprintf(f, "%" PRId64, c->i);
    if (c->kind == CELL_REAL) csv_real(f, c->d);
}

Err table_csv(const Table *t, FILE *f) {
    TRY(table_check(t));
    for (uint32_t i = 0; i < t->n_cols; i++) {
        csv_put(f, t->cols[i].key);
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

static json_t *json_text(const char *s) {  // invalid UTF-8 becomes U+FFFD
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

static json_t *json_cell(const TableCell *c) {
    if (c->kind == CELL_TEXT) return json_text(c->s);
    if (c->kind == CELL_INT) return json_integer(c->i);
    if (c->kind == CELL_REAL && isfinite(c->d)) return json_real(c->d);
    return json_null();  // JSON has no infinity or NaN
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
