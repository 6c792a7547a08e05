#include "report/page.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

// The content security policy forbids every request, whatever the text contains.
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n<title>";

static void escaped(FILE *f, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&': (void)fputs("&amp;", f); break;
        case '<': (void)fputs("&lt;", f); break;
        case '>': (void)fputs("&gt;", f); break;
        case '"': (void)fputs("&quot;", f); break;
        case '\'': (void)fputs("&#39;", f); break;
        default: (void)fputc(*text, f);
        }
    }
}

static void element(FILE *f, const char *open, const char *text, const char *close) {
    (void)fputs(open, f);
    escaped(f, text);
    (void)fputs(close, f);
}

static void bytes(FILE *f, const unsigned char *at, size_t n) { (void)fwrite(at, 1, n, f); }

void page_begin(Page *p, FILE *out, Arena *scratch, const char *title) {
    *p = (Page){.out = out, .scratch = scratch};
    element(out, head, title, "</title>\n<style>\n");
    bytes(out, asset_page_css, asset_page_css_bytes);
    (void)fputs("</style>\n</head>\n<body>\n", out);
    element(out, "<h1>", title, "</h1>\n");
}

void page_heading(Page *p, const char *text) { element(p->out, "<h2>", text, "</h2>\n"); }

void page_text(Page *p, const char *fmt, ...) {
    char    text[4096];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    element(p->out, "<p>", text, "</p>\n");
}

static void cell(FILE *f, const Column *col, const TableCell *c) {
    char   text[64];
    double scale = col->scale != 0 ? col->scale : 1;
    bool   whole = c->kind == CELL_INT && scale == 1 && col->decimals == 0;
    double v = c->kind == CELL_INT ? (double)c->i : c->kind == CELL_REAL ? c->d : 0;
    if (c->kind == CELL_TEXT) {
        element(f, "<td class=\"text\">", c->s, "</td>");
        return;
    }
    if (c->kind == CELL_MISSING || isnan(v))
        (void)snprintf(text, sizeof text, "%s", c->kind == CELL_MISSING ? "" : "-");
    else if (whole)
        (void)snprintf(text, sizeof text, "%" PRId64, c->i);
    else
        (void)snprintf(text, sizeof text, "%.*f", col->decimals, v / scale);
    element(f, "<td>", text, "</td>");
}

static void table_head(FILE *f, const Table *t) {
    (void)fputs("<thead><tr>", f);
    for (uint32_t i = 0; i < t->n_cols; i++) {
        bool text = t->first != NULL && t->first->cells[i].kind == CELL_TEXT;
        element(f, text ? "<th class=\"text\">" : "<th>", t->cols[i].head, "");
        if (t->cols[i].unit != NULL) element(f, " [", t->cols[i].unit, "]");
        (void)fputs("</th>", f);
    }
    (void)fputs("</tr></thead>\n<tbody>\n", f);
}

Err page_table(Page *p, const Table *t, const char *caption) {
    FILE *f = p->out;
    TRY(table_check(t));
    (void)fputs("<figure>", f);
    if (caption != NULL) element(f, "<figcaption>", caption, "</figcaption>");
    (void)fputs("<div class=\"wide\"><table>\n", f);
    table_head(f, t);
    for (const TableRow *r = t->first; r != NULL; r = r->next) {
        (void)fputs(r->total ? "<tr class=\"total\">" : "<tr>", f);
        for (uint32_t i = 0; i < t->n_cols; i++) cell(f, &t->cols[i], &r->cells[i]);
        (void)fputs("</tr>\n", f);
    }
    (void)fputs("</tbody></table></div></figure>\n", f);
    return ERR_OK;
}

// JSON within a script element: '<' is escaped, so that no text can end the element.
static Err script_json(FILE *f, const json_t *doc) {
    char *text = json_dumps(doc, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    if (text == NULL) return err_set(ERR_LIMIT, "no memory for the numbers of a chart");
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '<')
            (void)fputs("\\u003c", f);
        else
            (void)fputc(*at, f);
    }
    free(text);
    return ERR_OK;
}

Err page_chart(Page *p, const Chart *c) {
    FILE    *f = p->out;
    json_t  *config = NULL;
    uint32_t id = p->n_charts++;
    TRY(chart_json(c, p->scratch, &config));
    (void)fprintf(f, "<figure><div class=\"chart\"><canvas role=\"img\" data-config=\"chart-%u\"",
                  id);
    element(f, " aria-label=\"", c->title, "\"></canvas></div></figure>\n");
    (void)fprintf(f, "<script type=\"application/json\" id=\"chart-%u\">", id);
    Err e = script_json(f, config);
    (void)fputs("</script>\n", f);
    json_decref(config);
    return e;
}

Err page_end(Page *p) {
    FILE *f = p->out;
    if (p->n_charts > 0) {
        (void)fputs("<script>\n", f);
        bytes(f, asset_chart_js, asset_chart_js_bytes);
        (void)fputs("\n</script>\n<script>\n", f);
        bytes(f, asset_page_js, asset_page_js_bytes);
        (void)fputs("</script>\n", f);
    }
    (void)fputs("</body>\n</html>\n", f);
    if (fflush(f) != 0 || ferror(f) != 0)
        return err_set(ERR_IO, "writing the page failed: %s", strerror(errno));
    return ERR_OK;
}
