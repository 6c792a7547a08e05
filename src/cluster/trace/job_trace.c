#include "cluster/trace/job_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cluster/trace/job_trace_int.h"

enum { FORMATS_MAX = 32 };
static const size_t file_most = (size_t)1 << 32;

static const TraceFormat *const formats[] = {
#define X(id, about) &trace_##id,
#include "cluster/trace/trace_format.def"
#undef X
    NULL,
};

// Index of the i-th distinct name: formats with the same name are adjacent.
static uint32_t nth(uint32_t i) {
    uint32_t k = 0;
    for (; formats[k] != NULL; k++) {
        if (k > 0 && strcmp(formats[k]->name, formats[k - 1]->name) == 0) continue;
        if (i-- == 0) break;
    }
    return k;
}

const char *trace_format_name(uint32_t i) {
    uint32_t k = nth(i);
    return formats[k] != NULL ? formats[k]->name : NULL;
}

const char *trace_formats(Arena *a) {
    const char *list = "auto";
    for (uint32_t i = 0; trace_format_name(i) != NULL; i++)
        list = arena_printf(a, "%s, %s", list, trace_format_name(i));
    return list;
}

static Err unknown_format(const char *name, Arena *a) {
    const char *names[FORMATS_MAX];
    size_t      n = 0;
    for (; n < FORMATS_MAX && trace_format_name((uint32_t)n) != NULL; n++)
        names[n] = trace_format_name((uint32_t)n);
    const char *meant = text_nearest(name, names, n);
    return err_set(ERR_ARG, "there is no trace format '%.40s'; %s%s%sthere are %s", name,
                   meant != NULL ? "did you mean " : "", meant != NULL ? meant : "",
                   meant != NULL ? "? " : "", trace_formats(a));
}

static uint32_t column_named(const TraceFormat *f, const char *name) {
    for (uint32_t c = 0; f->columns[c].name != NULL; c++)
        if (strcmp(f->columns[c].name, name) == 0) return c;
    return JOB_NONE;
}

static uint32_t field_named(const Csv *row, const char *name) {
    for (uint32_t i = 0; i < row->n; i++)
        if (strcmp(row->field[i], name) == 0) return i;
    return JOB_NONE;
}

static bool looks_like_number(const char *s) {
    return s[0] != '\0' && s[strspn(s, "0123456789.eE+-")] == '\0';
}

// The first row matches the format; without a header, by its number of fields.
static bool matches(const TraceFormat *f, const Csv *row) {
    uint32_t n = 0;
    for (; f->columns[n].name != NULL; n++)
        if (f->header && f->columns[n].needed && field_named(row, f->columns[n].name) == JOB_NONE)
            return false;
    if (f->header) return true;
    bool digits =
        f->sep == '\t' || (row->n == 5 && looks_like_number(row->field[2]) &&
                           looks_like_number(row->field[3]) && looks_like_number(row->field[4]));
    return row->n == n && digits;
}

// The text of a format that is JSON begins with a bracket.
static bool is_json(const char *text, size_t len) {
    size_t at = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    while (at < len && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0') at++;
    return at < len && (text[at] == '{' || text[at] == '[');
}

// Parses a copy of the first row, as parsing modifies the text.
static Err peek(const char *name, const char *text, size_t len, char sep, Arena *a, Csv *row) {
    const char *end = len > 0 ? memchr(text, '\n', len) : NULL;
    size_t      n = end != NULL ? (size_t)(end - text) + 1 : len;
    bool        more = false;
    char       *copy = arena_try(a, n + 1, 1, 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "%s: no memory for its first line", name);
    if (n > 0) memcpy(copy, text, n);
    TRY(csv_open(row, name, copy, n, sep, sep == ','));
    TRY(csv_next(row, &more));
    if (!more || (row->n == 1 && row->field[0][0] == '\0'))
        return err_set(ERR_PARSE, "%s:1: is empty; a trace begins with a header or a job", name);
    return ERR_OK;
}

static Err missing(const TraceFormat *f, const Csv *row) {
    for (uint32_t c = 0; f->header && f->columns[c].name != NULL; c++)
        if (f->columns[c].needed && field_named(row, f->columns[c].name) == JOB_NONE)
            return err_set(ERR_PARSE, "%s:1: no column '%s', which format %s needs; is it another?",
                           row->name, f->columns[c].name, f->name);
    return err_set(ERR_PARSE, "%s:1: %u fields do not make a job of format %s; is it another?",
                   row->name, row->n, f->name);
}

// The format of that name; with auto, the first that matches.
static Err choose(const char *name, const char *text, size_t len, const char *wanted, Arena *a,
                  const TraceFormat **out) {
    bool               any = strcmp(wanted, "auto") == 0, json = is_json(text, len);
    const TraceFormat *last = NULL;
    size_t             mark = a->used;
    Csv                row;
    for (uint32_t i = 0; formats[i] != NULL; i++) {
        if (any ? json != (formats[i]->read != NULL) : strcmp(formats[i]->name, wanted) != 0)
            continue;
        last = formats[i];
        if (last->read != NULL) {
            *out = last;
            return ERR_OK;
        }
        arena_rewind(a, mark);
        TRY(peek(name, text, len, last->sep, a, &row));
        if (matches(last, &row)) {
            *out = last;
            arena_rewind(a, mark);
            return ERR_OK;
        }
    }
    if (any) return err_set(ERR_PARSE, "%s:1: unknown trace format; name it by --format", name);
    return last == NULL ? unknown_format(wanted, a) : missing(last, &row);
}

static Err place_header(TraceReader *r) {
    bool more = false;
    for (uint32_t c = 0; c < TRACE_COLUMNS; c++) r->field_of[c] = JOB_NONE;
    TRY(csv_next(&r->csv, &more));
    r->fields = r->csv.n;
    for (uint32_t i = 0; i < r->csv.n; i++) {
        const char *head = r->csv.field[i];
        r->place[i] = column_named(r->format, head);
        if (r->place[i] == JOB_NONE && r->format->strict)
            return err_set(ERR_PARSE, "%s:1: there is no column '%.40s' in format %s", r->csv.name,
                           head, r->format->name);
        if (r->place[i] != JOB_NONE && field_named(&r->csv, head) != i)
            return err_set(ERR_PARSE, "%s:1: column '%.40s' is there twice", r->csv.name, head);
        if (r->place[i] < TRACE_COLUMNS) r->field_of[r->place[i]] = i;
    }
    return r->format->begin != NULL ? r->format->begin(r) : ERR_OK;
}

static Err place_columns(TraceReader *r) {
    if (r->format->header) return place_header(r);
    for (; r->format->columns[r->fields].name != NULL; r->fields++) r->place[r->fields] = r->fields;
    return ERR_OK;
}

// Jobs of formats without ids are named by their row.
static Err number_id(TraceReader *r, Job *j) {
    char     digits[16], *at = digits + sizeof digits;
    uint32_t v = j->row;
    *--at = '\0';
    do *--at = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    size_t n = (size_t)(digits + sizeof digits - at);
    char  *kept = arena_try(r->arena, n, 1, 1);
    if (kept == NULL) return err_set(ERR_LIMIT, "%s: no memory for its jobs", r->csv.name);
    j->id = memcpy(kept, at, n);
    return ERR_OK;
}

static Err check_demand(const TraceReader *r, Job *j) {
    if (j->gpus == 0) j->gpu_milli = 0;
    if (j->gpus > 0 && j->gpu_milli == 0)
        return err_set(ERR_INVALID, "%s:%zu: gpu_milli: 0 of a GPU; a whole one is 1000",
                       r->csv.name, r->csv.line);
    if (j->gpus > 1 && j->gpu_milli != 1000)
        return err_set(ERR_INVALID,
                       "%s:%zu: gpu_milli: %u of each of %u GPUs; only one GPU can be shared",
                       r->csv.name, r->csv.line, j->gpu_milli, j->gpus);
    return ERR_OK;
}

static Err read_job(TraceReader *r, Job *j) {
    if (r->csv.n != r->fields)
        return err_set(ERR_PARSE, "%s:%zu: %u fields where there should be %u%s", r->csv.name,
                       r->csv.line, r->csv.n, r->fields,
                       r->format->sep == '|' && r->csv.n > r->fields
                           ? "; a name has a '|' in it: leave out JobName and the like"
                           : "");
    r->began = r->ended = JOB_UNKNOWN;
    r->factor = 0;
    r->skip = NULL;
    for (uint32_t i = 0; i < r->fields; i++) {
        const TraceColumn *c = r->place[i] != JOB_NONE ? &r->format->columns[r->place[i]] : NULL;
        if (c == NULL || c->take == NULL) continue;
        r->column = c->name;
        TRY(c->take(r, r->csv.field[i], j));
    }
    if (r->format->finish != NULL) TRY(r->format->finish(r, j));
    if (r->skip != NULL) {
        trace_leave_out(r, r->skip, 1);
        return ERR_OK;
    }
    if (j->id == NULL) TRY(number_id(r, j));
    return check_demand(r, j);
}

static Err read_jobs(TraceReader *r, JobList *l) {
    uint32_t row = 0;
    for (bool more = true;;) {
        TRY(csv_next(&r->csv, &more));
        if (!more) return ERR_OK;
        if (r->csv.n == 1 && r->csv.field[0][0] == '\0') {
            if (csv_blank(&r->csv)) return ERR_OK;
            return err_set(ERR_PARSE, "%s:%zu: an empty line between jobs", r->csv.name,
                           r->csv.line);
        }
        Job *j = &l->at[l->n];
        *j = (Job){.work = JOB_UNKNOWN,
                   .gpu_milli = 1000,
                   .row = row,
                   .model = JOB_NONE,
                   .tenant = JOB_NONE};
        TRY(read_job(r, j));
        row++;
        l->n += r->skip == NULL;
    }
}

static Err make_room(const char *name, const char *text, size_t len, Arena *a, JobList *l) {
    size_t lines = 1;
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + len - p))) != NULL; p++)
        lines++;
    if (lines < UINT32_MAX) l->at = arena_try_new(a, Job, lines);
    if (l->at == NULL)
        return err_set(ERR_LIMIT, "%s: no memory for the jobs of %zu lines", name, lines);
    return ERR_OK;
}

static void rebase_to_first(JobList *l) {
    if (l->n == 0) return;
    l->origin = l->at[0].submit;
    for (uint32_t i = 0; i < l->n; i++) l->at[i].submit -= l->origin;
}

static void take_names(const TraceReader *r, JobList *l) {
    l->models = r->models.at;
    l->n_models = r->models.n;
    l->tenants = r->tenants.at;
    l->n_tenants = r->tenants.n;
    l->gpu_types = r->gpu_types.at;
    l->n_gpu_types = r->gpu_types.n;
}

static void drop_types(JobList *l) {
    for (uint32_t i = 0; i < l->n; i++) l->at[i].gpu_types = 0;
    l->n_gpu_types = 0;
}

static Err read_rows(TraceReader *r, char *text, size_t len, JobList *l) {
    TRY(make_room(l->name, text, len, r->arena, l));
    TRY(csv_open(&r->csv, l->name, text, len, r->format->sep, r->format->sep == ','));
    TRY(place_columns(r));
    return read_jobs(r, l);
}

static Err no_jobs(const TraceReader *r, const JobList *l, Arena *a) {
    const char *why = "";
    if (l->n_left_out == 0) return err_set(ERR_PARSE, "%s: has a header and no jobs", l->name);
    for (uint32_t i = 0; i < l->n_left_out; i++)
        why = arena_printf(a, "%s%s%u %s", why, i > 0 ? ", " : "", l->left_out[i].rows,
                           l->left_out[i].reason);
    return err_set(ERR_PARSE, "%s: has no job of format %s that ran to its end: %s", l->name,
                   r->format->name, why);
}

static Err take_left_out(const TraceReader *r, JobList *l) {
    RowsLeftOut *kept = arena_try_new(r->arena, RowsLeftOut, r->n_left_out);
    if (kept == NULL) return err_set(ERR_LIMIT, "%s: no memory for its jobs", l->name);
    memcpy(kept, r->left_out, r->n_left_out * sizeof *kept);
    l->left_out = kept;
    l->n_left_out = r->n_left_out;
    return ERR_OK;
}

// text has room for len + 1 bytes and is modified.
static Err parse(const char *name, char *text, size_t len, const char *format,
                 const JobTraceOptions *o, Arena *a, JobList *out) {
    static const JobTraceOptions none;
    TraceReader r = {.format = &trace_plain, .options = o != NULL ? o : &none, .arena = a};
    JobList     l = {.name = name};
    TRY(choose(name, text, len, format, a, &r.format));
    l.format = r.format->name;
    r.unit = r.options->unit > 0 ? r.options->unit : r.format->unit;
    r.list = &l;
    r.csv.name = name;
    interner_init(&r.rows, a);
    interner_init(&r.ids, a);
    interner_init(&r.models, a);
    interner_init(&r.tenants, a);
    interner_init(&r.gpu_types, a);
    TRY(r.format->read != NULL ? r.format->read(&r, text, len) : read_rows(&r, text, len, &l));
    TRY(take_left_out(&r, &l));
    if (l.n == 0) return no_jobs(&r, &l, a);
    TRY(job_list_sort(&l, a));
    if (r.format->dated) rebase_to_first(&l);
    take_names(&r, &l);
    if (r.options->any_type) drop_types(&l);
    job_list_make_elastic(&l, &r.options->elastic);
    TRY(trace_window_cut(&r.options->window, &l));
    *out = l;
    return ERR_OK;
}

Err trace_parse(const char *name, const char *text, size_t len, const char *format,
                const JobTraceOptions *o, Arena *a, JobList *out) {
    char *copy = arena_try(a, len + 1, 1, 1);
    if (copy == NULL) return err_set(ERR_LIMIT, "%s: no memory for %zu bytes", name, len);
    if (len > 0) memcpy(copy, text, len);
    return parse(name, copy, len, format, o, a, out);
}

static const char *shipped_names(Arena *a) {
    const char *list = trace_files[0].name;
    for (const TraceFile *f = trace_files + 1; f->name != NULL; f++)
        list = arena_printf(a, "%s, %s", list, f->name);
    return list;
}

Err trace_read(const char *path, const char *format, const JobTraceOptions *o, Arena *a,
               JobList *out) {
    char  *text = NULL;
    size_t len = 0;
    for (const TraceFile *f = trace_files; f->name != NULL; f++)
        if (strcmp(f->name, path) == 0)
            return trace_parse(f->name, (const char *)f->bytes, f->len, format, o, a, out);
    Err e = file_read(path, file_most, a, &text, &len);
    if (e != ERR_OK && strpbrk(path, "/.") == NULL)
        return err_add(e, "%s: neither a shipped trace (%s) nor a file", path, shipped_names(a));
    TRY(e);
    return parse(path, text, len, format, o, a, out);
}
