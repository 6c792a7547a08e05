#include "tests/serve/exposition.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { FAMILIES = 512, SAMPLES = 65536 };

typedef struct Family {
    char name[128], type[16];
    bool closed;
} Family;

typedef struct Reader {
    Exposition *out;
    Arena      *a;
    Family      families[FAMILIES];
    uint32_t    n_families;
    const char *line;
} Reader;

static bool fault(Reader *r, const char *what) {
    if (r->out->fault[0] == '\0')
        (void)snprintf(r->out->fault, sizeof r->out->fault, "%s: %.200s", what, r->line);
    return false;
}

static bool name_char(char c, bool first) {
    return isalpha((unsigned char)c) || c == '_' || c == ':' ||
           (!first && isdigit((unsigned char)c));
}

static size_t name_length(const char *s) {
    size_t n = 0;
    while (name_char(s[n], n == 0)) n++;
    return n;
}

static Family *family_named(Reader *r, const char *name, size_t len) {
    for (uint32_t i = 0; i < r->n_families; i++)
        if (strlen(r->families[i].name) == len && memcmp(r->families[i].name, name, len) == 0)
            return &r->families[i];
    return NULL;
}

static bool read_help(Reader *r, const char *line) {
    size_t n = name_length(line);
    if (n == 0 || n > 120 || line[n] != ' ' || line[n + 1] == '\0') return fault(r, "HELP");
    if (family_named(r, line, n) != NULL) return fault(r, "HELP twice");
    if (r->n_families == FAMILIES) return fault(r, "too many families");
    if (r->n_families > 0) r->families[r->n_families - 1].closed = true;
    Family *f = &r->families[r->n_families++];
    memcpy(f->name, line, n);
    for (const char *at = line + n; *at != '\0'; at++)
        if (*at == '\\' && at[1] != '\\' && at[1] != 'n') return fault(r, "HELP's escape");
    return true;
}

static bool read_type(Reader *r, const char *line) {
    static const char *const known[] = {"counter", "gauge", "histogram"};
    size_t                   n = name_length(line);
    Family                  *f = family_named(r, line, n);
    if (f == NULL || f != &r->families[r->n_families - 1]) return fault(r, "TYPE without HELP");
    if (f->type[0] != '\0' || line[n] != ' ') return fault(r, "TYPE twice");
    for (int i = 0; i < 3; i++)
        if (strcmp(line + n + 1, known[i]) == 0) (void)strcpy(f->type, known[i]);
    bool total = n > 6 && memcmp(line + n - 6, "_total", 6) == 0;
    if (f->type[0] == '\0') return fault(r, "unknown TYPE");
    if (strcmp(f->type, "counter") == 0 && !total && strncmp(line, "nv_", 3) != 0)
        return fault(r, "a counter without _total");
    if (strcmp(f->type, "gauge") == 0 && total) return fault(r, "a gauge with _total");
    return true;
}

// After the opening brace; where the closing one is, or NULL.
static const char *labels_end(const char *s) {
    while (*s != '}') {
        size_t n = name_length(s);
        if (n == 0 || s[n] != '=' || s[n + 1] != '"') return NULL;
        for (s += n + 2; *s != '"'; s++) {
            if (*s == '\0') return NULL;
            if (*s == '\\' && strchr("\\\"n", *++s) == NULL) return NULL;
        }
        s++;
        if (*s == ',')
            s++;
        else if (*s != '}')
            return NULL;
    }
    return s;
}

static Family *family_of(Reader *r, const char *name, size_t len) {
    static const char *const tails[] = {"_bucket", "_sum", "_count"};
    Family                  *f = family_named(r, name, len);
    for (int i = 0; i < 3 && f == NULL; i++) {
        size_t tail = strlen(tails[i]);
        if (len <= tail || memcmp(name + len - tail, tails[i], tail) != 0) continue;
        f = family_named(r, name, len - tail);
        if (f != NULL && strcmp(f->type, "histogram") != 0) f = NULL;
    }
    return f;
}

static bool read_sample(Reader *r, const char *line) {
    size_t      n = name_length(line);
    Family     *f = family_of(r, line, n);
    const char *at = line + n, *labels = "";
    if (n == 0 || f == NULL || f->type[0] == '\0') return fault(r, "a sample of no family");
    if (f->closed) return fault(r, "a family in two pieces");
    if (*at == '{') {
        const char *end = labels_end(at + 1);
        if (end == NULL) return fault(r, "labels");
        labels = arena_printf(r->a, "%.*s", (int)(end - at - 1), at + 1);
        at = end + 1;
    }
    char  *end = NULL;
    double value = strtod(at + 1, &end);
    if (*at != ' ' || end == at + 1 || *end != '\0') return fault(r, "value");
    if (strcmp(f->type, "gauge") != 0 && !(value >= 0)) return fault(r, "a negative count");
    if (r->out->n == SAMPLES) return fault(r, "too many samples");
    const char *name = arena_printf(r->a, "%.*s", (int)n, line);
    if (!isnan(exposition_value(r->out, name, labels))) return fault(r, "a sample twice");
    r->out->samples[r->out->n++] = (Sample){name, labels, value};
    return true;
}

static double edge_of(const char *labels) {
    const char *le = strstr(labels, "le=\"");
    return le == NULL ? NAN : strncmp(le + 4, "+Inf", 4) == 0 ? INFINITY : strtod(le + 4, NULL);
}

// Buckets of one histogram follow each other; the last is +Inf and equals _count.
static void check_buckets(Reader *r) {
    double edge = -1, sum = 0;
    for (uint32_t i = 0; i < r->out->n; i++) {
        const Sample *s = &r->out->samples[i];
        size_t        n = strlen(s->name);
        bool          bucket = n > 7 && strcmp(s->name + n - 7, "_bucket") == 0;
        r->line = s->name;
        if (!bucket) {
            if (edge != -1 && !isinf(edge)) (void)fault(r, "no +Inf");
            if (isinf(edge) && n > 6 && strcmp(s->name + n - 6, "_count") == 0 && s->value != sum)
                (void)fault(r, "_count is not the last bucket");
            if (n > 6 && strcmp(s->name + n - 6, "_count") == 0) edge = -1;
            continue;
        }
        if (isinf(edge)) edge = -1;
        if (!(edge_of(s->labels) > edge)) (void)fault(r, "edges do not grow");
        if (edge != -1 && s->value < sum) (void)fault(r, "buckets are not cumulative");
        edge = edge_of(s->labels);
        sum = s->value;
    }
}

static bool read_line(Reader *r, const char *line) {
    r->line = line;
    if (strncmp(line, "# HELP ", 7) == 0) return read_help(r, line + 7);
    if (strncmp(line, "# TYPE ", 7) == 0) return read_type(r, line + 7);
    if (line[0] == '#' || line[0] == '\0') return fault(r, "comment");
    return read_sample(r, line);
}

void exposition_read(Exposition *e, Str text, Arena *a) {
    Reader *r = arena_new(a, Reader, 1);
    *e = (Exposition){.samples = arena_new(a, Sample, SAMPLES)};
    *r = (Reader){.out = e, .a = a, .line = ""};
    if (text.len == 0 || text.at[text.len - 1] != '\n') (void)fault(r, "no newline at the end");
    if (!utf8_ok(text.at, text.len)) (void)fault(r, "not UTF-8");
    for (const char *at = text.at, *end = text.at + text.len; at < end && e->fault[0] == '\0';) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) break;
        (void)read_line(r, arena_printf(a, "%.*s", (int)(stop - at), at));
        at = stop + 1;
    }
    check_buckets(r);
}

double exposition_value(const Exposition *e, const char *name, const char *labels) {
    for (uint32_t i = 0; i < e->n; i++)
        if (strcmp(e->samples[i].name, name) == 0 && strcmp(e->samples[i].labels, labels) == 0)
            return e->samples[i].value;
    return NAN;
}

const char *exposition_shrunk(const Exposition *before, const Exposition *after) {
    for (uint32_t i = 0; i < before->n; i++) {
        const Sample *s = &before->samples[i];
        bool count = strstr(s->name, "_total") != NULL || strstr(s->name, "_bucket") != NULL ||
                     strstr(s->name, "_count") != NULL || strncmp(s->name, "nv_", 3) == 0;
        if (count && !(exposition_value(after, s->name, s->labels) >= s->value)) return s->name;
    }
    return NULL;
}
