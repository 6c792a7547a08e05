#include "chip/request_trace.h"

#include <string.h>

#include "base/csv.h"
#include "base/decimal.h"
#include "base/file.h"

enum { FILE_MOST = 1 << 28, NAME_MOST = 255, MS = 1000000 };

#define TIME_MOST ((TimeNs)1000000 * 1000000000)  // nanoseconds: 11 days

typedef enum TraceColumn { TIME, NETWORK, DEADLINE, TENANT, COLUMNS } TraceColumn;

static const char *const names[COLUMNS] = {"time_ms", "network", "deadline_ms", "tenant"};

typedef struct TraceFile {
    Csv           csv;
    uint32_t      field[COLUMNS];  // CHIP_NONE: the file lacks the column
    uint32_t      fields, room;
    Arena        *arena;
    RequestTrace *to;
} TraceFile;

static Err read_header(TraceFile *f) {
    bool more = false;
    TRY(csv_next(&f->csv, &more));
    f->fields = more ? f->csv.n : 0;
    for (uint32_t c = 0; c < COLUMNS; c++) f->field[c] = CHIP_NONE;
    for (uint32_t i = 0; i < f->fields; i++) {
        uint32_t c = 0;
        while (c < COLUMNS && strcmp(names[c], f->csv.field[i]) != 0) c++;
        if (c == COLUMNS)
            return err_set(ERR_PARSE,
                           "%s:1: no column '%.40s'; there are time_ms, network, deadline_ms and "
                           "tenant",
                           f->csv.name, f->csv.field[i]);
        if (f->field[c] != CHIP_NONE)
            return err_set(ERR_PARSE, "%s:1: column %s is there twice", f->csv.name, names[c]);
        f->field[c] = i;
    }
    for (uint32_t c = TIME; c <= NETWORK; c++)
        if (f->field[c] == CHIP_NONE)
            return err_set(ERR_PARSE, "%s:1: lacks the column %s", f->csv.name, names[c]);
    return ERR_OK;
}

// "": the column is absent.
static const char *text_of(const TraceFile *f, TraceColumn c) {
    return f->field[c] == CHIP_NONE ? "" : f->csv.field[f->field[c]];
}

static Err bad(const TraceFile *f, TraceColumn c, const char *why) {
    return err_set(ERR_PARSE, "%s:%zu: %s: '%.40s' %s", f->csv.name, f->csv.line, names[c],
                   text_of(f, c), why);
}

static Err read_time(const TraceFile *f, TraceColumn c, TimeNs *out) {
    DecimalError e = decimal_read(text_of(f, c), MS, TIME_MOST, out);
    if (e == DECIMAL_LARGE) return bad(f, c, "is more than 1e9 ms");
    return e == DECIMAL_OK ? ERR_OK : bad(f, c, decimal_error_text(e));
}

static Err check_name(const TraceFile *f, TraceColumn c) {
    const char *name = text_of(f, c);
    if (strlen(name) > NAME_MOST) return bad(f, c, "is longer than 255 bytes");
    for (const char *at = name; *at != '\0'; at++)
        if ((unsigned char)*at < ' ') return bad(f, c, "has control characters");
    return ERR_OK;
}

static Err find_tenant(const TraceFile *f, uint32_t *out) {
    RequestTrace *t = f->to;
    const char   *network = text_of(f, NETWORK), *name = text_of(f, TENANT);
    if (network[0] == '\0') return bad(f, NETWORK, "names no network");
    TRY(check_name(f, NETWORK));
    TRY(check_name(f, TENANT));
    if (name[0] == '\0') name = network;
    for (uint32_t i = 0; i < t->n_tenants; i++)
        if (strcmp(t->tenants[i].name, name) == 0 && strcmp(t->tenants[i].network, network) == 0) {
            *out = i;
            return ERR_OK;
        }
    if (t->n_tenants == CHIP_TENANTS)
        return err_set(ERR_LIMIT, "%s:%zu: more than %d tenants and networks", f->csv.name,
                       f->csv.line, CHIP_TENANTS);
    t->tenants[t->n_tenants] = (TraceTenant){.name = name, .network = network};
    *out = t->n_tenants++;
    return ERR_OK;
}

static Err grow(TraceFile *f) {
    RequestTrace *t = f->to;
    if (t->n < f->room) return ERR_OK;
    uint32_t      room = f->room > 0 ? 2 * f->room : 256;
    TraceRequest *at = arena_try_new(f->arena, TraceRequest, room);
    if (t->n == REQUEST_TRACE_MOST || at == NULL)
        return err_set(ERR_LIMIT, "%s:%zu: more than %d requests, or no memory for them",
                       f->csv.name, f->csv.line, REQUEST_TRACE_MOST);
    if (t->n > 0) memcpy(at, t->at, t->n * sizeof *at);
    t->at = at;
    f->room = room;
    return ERR_OK;
}

static Err read_row(TraceFile *f) {
    RequestTrace *t = f->to;
    TraceRequest  r = {.due = 0};
    if (f->csv.n != f->fields)
        return err_set(ERR_PARSE, "%s:%zu: %u fields where there should be %u", f->csv.name,
                       f->csv.line, f->csv.n, f->fields);
    TRY(read_time(f, TIME, &r.at));
    if (t->n > 0 && r.at < t->at[t->n - 1].at)
        return bad(f, TIME, "is before the row above; sort the rows by time");
    if (text_of(f, DEADLINE)[0] != '\0') {
        TRY(read_time(f, DEADLINE, &r.due));
        if (r.due == 0) return bad(f, DEADLINE, "leaves no time; leave it empty for the rule's");
    }
    TRY(find_tenant(f, &r.tenant));
    TRY(grow(f));
    t->tenants[r.tenant].n++;
    t->at[t->n++] = r;
    return ERR_OK;
}

Err request_trace_parse(const char *name, char *text, size_t len, Arena *a, RequestTrace *out) {
    RequestTrace t = {.name = name};
    TraceFile    f = {.arena = a, .to = &t};
    TRY(csv_open(&f.csv, name, text, len, ',', true));
    TRY(read_header(&f));
    for (bool more = true; !csv_blank(&f.csv);) {
        TRY(csv_next(&f.csv, &more));
        if (!more) break;
        TRY(read_row(&f));
    }
    if (t.n == 0) return err_set(ERR_PARSE, "%s: has no requests", name);
    *out = t;
    return ERR_OK;
}

Err request_trace_load(const char *path, Arena *a, RequestTrace *out) {
    char  *text = NULL;
    size_t len = 0;
    TRY(file_read(path, FILE_MOST, a, &text, &len));
    return request_trace_parse(path, text, len, a, out);
}

void request_trace_put(FILE *f, const ChipTenant *tenants, const char *const *networks,
                       const ChipRequest *at, uint32_t n) {
    (void)fputs("time_ms,network,deadline_ms,tenant\n", f);
    for (uint32_t i = 0; i < n; i++) {
        const ChipRequest *r = &at[i];
        decimal_put(f, r->arrival, MS);
        (void)fputc(',', f);
        csv_put(f, networks[r->tenant]);
        (void)fputc(',', f);
        decimal_put(f, r->deadline - r->arrival, MS);
        (void)fputc(',', f);
        csv_put(f, tenants[r->tenant].name);
        (void)fputc('\n', f);
    }
}

Err request_trace_save(const char *path, const ChipTenant *tenants, const char *const *networks,
                       const ChipRequest *at, uint32_t n) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    request_trace_put(f.out, tenants, networks, at, n);
    return file_commit(&f);
}
