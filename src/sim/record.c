#include "sim/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"

enum {                // fields of a record kind in a file, beside its time
    HAS_REQUEST = 1,  // and its tenant
    HAS_DEADLINE = 2,
    HAS_BLOCK = 4,   // first and n_layers
    HAS_WANTED = 8,  // and versions
    HAS_CORES = 16,
    HAS_LEVEL = 32,
    HAS_OUTCOME = 64,
};

static const char *const kind_names[RECORD_KINDS] = {
#define X(id, name) [RECORD_##id] = name,
#include "sim/record_kind.def"
#undef X
};

static const char *const outcome_names[OUTCOMES] = {"met", "late", "rejected"};

const char *record_kind_name(RecordKind k) { return k < RECORD_KINDS ? kind_names[k] : "unknown"; }

const char *outcome_name(Outcome o) { return o < OUTCOMES ? outcome_names[o] : "unknown"; }

static uint32_t fields_of(RecordKind k) {
    static const uint8_t of[RECORD_KINDS] = {
        [RECORD_ARRIVE] = HAS_REQUEST | HAS_DEADLINE,
        [RECORD_START] = HAS_REQUEST | HAS_BLOCK | HAS_WANTED | HAS_CORES | HAS_LEVEL,
        [RECORD_GROW] = HAS_REQUEST | HAS_BLOCK | HAS_CORES,
        [RECORD_END] = HAS_REQUEST | HAS_BLOCK | HAS_CORES,
        [RECORD_FINISH] = HAS_REQUEST | HAS_OUTCOME,
        [RECORD_REJECT] = HAS_REQUEST | HAS_OUTCOME,
        [RECORD_LEVEL] = HAS_LEVEL,
    };
    return of[k];
}

static void list_put(void *self, const Record *r) {
    RecordList *l = self;
    if (l->n == l->room) {
        uint32_t room = l->room == 0 ? 1024 : l->room * 2;
        Record  *at = arena_new(l->arena, Record, room);
        if (l->n > 0) memcpy(at, l->at, l->n * sizeof *at);
        l->at = at;
        l->room = room;
    }
    l->at[l->n++] = *r;
}

RecordSink record_list(RecordList *l) { return (RecordSink){list_put, l}; }

static Err failed(void) { return err_set(ERR_IO, "writing a record failed: %s", strerror(errno)); }

Err record_write_header(FILE *f, const json_t *header) {
    bool ok = json_dumpf(header, f, JSON_COMPACT) == 0 && fputc('\n', f) != EOF;
    return ok ? ERR_OK : failed();
}

// As ranges, "0-3,8", to keep lines short.
static void write_cores(FILE *f, const Cores *s) {
    const char *sep = "";
    fputs(",\"cores\":\"", f);
    for (uint32_t i = cores_next(s, 0); i < CORES_MAX;) {
        uint32_t end = i;
        while (end + 1 < CORES_MAX && cores_has(s, end + 1)) end++;
        fprintf(f, end > i ? "%s%u-%u" : "%s%u", sep, i, end);
        sep = ",";
        i = end + 1 < CORES_MAX ? cores_next(s, end + 1) : CORES_MAX;
    }
    fputc('"', f);
}

Err record_write(FILE *f, const Record *r) {
    CHECK(r->kind < RECORD_KINDS);
    uint32_t has = fields_of(r->kind);
    fprintf(f, "{\"at\":%" PRId64 ",\"kind\":\"%s\"", r->at, kind_names[r->kind]);
    if (has & HAS_REQUEST)
        fprintf(f, ",\"request\":%" PRIu64 ",\"tenant\":%u", r->request, r->tenant);
    if (has & HAS_DEADLINE) fprintf(f, ",\"deadline\":%" PRId64, r->deadline);
    if (has & HAS_BLOCK) fprintf(f, ",\"first\":%u,\"n_layers\":%u", r->first, r->n_layers);
    if (has & HAS_WANTED)
        fprintf(f, ",\"wanted\":%u,\"versions\":\"%016" PRIx64 "\"", r->wanted, r->versions);
    if (has & HAS_CORES) write_cores(f, &r->cores);
    if (has & HAS_LEVEL) fprintf(f, ",\"level\":%u", r->level);
    if (has & HAS_OUTCOME) fprintf(f, ",\"outcome\":\"%s\"", outcome_name(r->outcome));
    if (r->why != NULL) {
        fputs(",\"why\":", f);
        json_put_string(f, r->why);
    }
    return fputs("}\n", f) != EOF && !ferror(f) ? ERR_OK : failed();
}

static Err write_all(FILE *f, const json_t *header, const RecordList *records) {
    TRY(record_write_header(f, header));
    for (uint32_t i = 0; i < records->n; i++) TRY(record_write(f, &records->at[i]));
    return ERR_OK;
}

Err record_save(const char *path, const json_t *header, const RecordList *records) {
    AtomicFile f;
    TRY(file_begin(&f, path));
    Err e = write_all(f.out, header, records);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

enum { FILE_SHIFT = 33 };  // files of at most 8 GiB

static Err get_number(const json_t *o, const char *key, uint32_t most, uint32_t *out) {
    int64_t x;
    TRY(json_get_int(o, key, 0, most, &x));
    *out = (uint32_t)x;
    return ERR_OK;
}

static Err get_enum(const json_t *o, const char *key, const char *const *names, uint32_t n,
                    uint32_t *out) {
    const char *text;
    TRY(json_get_text(o, key, &text));
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0) {
            *out = i;
            return ERR_OK;
        }
    return err_set(ERR_INVALID, "unknown %s '%.40s'; was it written by a newer version?", key,
                   text);
}

static bool take_core(const char **at, uint32_t *out) {
    uint32_t x = 0, digits = 0;
    for (; **at >= '0' && **at <= '9' && digits < 4; (*at)++, digits++)
        x = x * 10 + (uint32_t)(**at - '0');
    *out = x;
    return digits > 0 && x < CORES_MAX;
}

static bool take_cores(const char *at, Cores *out) {
    *out = (Cores){0};
    while (*at != '\0') {
        uint32_t first, last;
        if (!take_core(&at, &first)) return false;
        last = first;
        if (*at == '-' && (at++, !take_core(&at, &last))) return false;
        if (last < first) return false;
        for (uint32_t i = first; i <= last; i++) cores_add(out, i);
        if (*at == ',' && at[1] != '\0')
            at++;
        else if (*at != '\0')
            return false;
    }
    return true;
}

static Err get_cores(const json_t *o, Cores *out) {
    const char *text;
    TRY(json_get_text(o, "cores", &text));
    if (take_cores(text, out)) return ERR_OK;
    return err_set(ERR_INVALID, "invalid cores '%.40s'; write numbers below %d like 0-3,8", text,
                   CORES_MAX);
}

static Err get_hash(const json_t *o, uint64_t *out) {
    const char *text;
    char       *end = NULL;
    TRY(json_get_text(o, "versions", &text));
    *out = strtoull(text, &end, 16);
    if (strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16) return ERR_OK;
    return err_set(ERR_INVALID, "invalid versions '%.40s'; a hash has 16 digits of 0-9 and a-f",
                   text);
}

static Err get_record(const json_t *o, Arena *a, Record *r) {
    int64_t  x = 0;
    uint32_t kind = 0, outcome = 0;
    TRY(get_enum(o, "kind", kind_names, RECORD_KINDS, &kind));
    r->kind = (RecordKind)kind;
    TRY(json_get_int(o, "at", 0, INT64_MAX, &r->at));
    uint32_t has = fields_of(r->kind);
    if (has & HAS_REQUEST) TRY(json_get_int(o, "request", 0, INT64_MAX, &x));
    r->request = (uint64_t)x;
    if (has & HAS_REQUEST) TRY(get_number(o, "tenant", UINT16_MAX, &r->tenant));
    if (has & HAS_DEADLINE) TRY(json_get_int(o, "deadline", 0, INT64_MAX, &r->deadline));
    if (has & HAS_BLOCK) TRY(get_number(o, "first", UINT32_MAX, &r->first));
    if (has & HAS_BLOCK) TRY(get_number(o, "n_layers", UINT32_MAX, &r->n_layers));
    if (has & HAS_WANTED) TRY(get_number(o, "wanted", UINT32_MAX, &r->wanted));
    if (has & HAS_WANTED) TRY(get_hash(o, &r->versions));
    if (has & HAS_CORES) TRY(get_cores(o, &r->cores));
    if (has & HAS_LEVEL) TRY(get_number(o, "level", UINT32_MAX, &r->level));
    if (has & HAS_OUTCOME) TRY(get_enum(o, "outcome", outcome_names, OUTCOMES, &outcome));
    r->outcome = (Outcome)outcome;
    if (json_object_get(o, "why") == NULL) return ERR_OK;
    TRY(json_get_text(o, "why", &r->why));
    r->why = arena_str(a, r->why);
    return ERR_OK;
}

static Err parse_line(const char *line, size_t len, Arena *a, RecordSink sink) {
    json_t *o = NULL;
    Record  r = {0};
    TRY(json_parse("record", line, len, &o));
    Err e = get_record(o, a, &r);
    json_decref(o);
    if (e == ERR_OK) record_put(sink, &r);
    return e;
}

static Err parse_lines(const char *name, const char *text, size_t len, Arena *a, RecordSink sink,
                       json_t **header) {
    size_t line = 0;
    for (const char *at = text, *end = text + len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        Err e = ++line == 1 ? json_parse("header", at, (size_t)(stop - at), header)
                            : parse_line(at, (size_t)(stop - at), a, sink);
        if (e != ERR_OK) return err_add(e, "%s:%zu", name, line);
        if (line == 1 && !json_is_object(*header))
            return err_set(ERR_INVALID, "%s:1: the first line must be the header object", name);
        at = stop + 1;
    }
    if (line > 0) return ERR_OK;
    return err_set(ERR_PARSE, "%s: empty; a run file begins with a header line", name);
}

Err record_parse(const char *name, const char *text, size_t len, Arena *a, json_t **header,
                 RecordList *out) {
    json_t    *h = NULL;
    RecordList l = {.arena = a};
    Err        e = parse_lines(name, text, len, a, record_list(&l), &h);
    if (e != ERR_OK) {
        json_decref(h);
        return e;
    }
    *header = h;
    *out = l;
    return ERR_OK;
}

typedef struct ReadArgs {
    Arena      *arena;
    json_t    **header;
    RecordList *out;
} ReadArgs;

static Err parse_file(void *ctx, const char *path, char *text, size_t len) {
    ReadArgs *r = ctx;
    return record_parse(path, text, len, r->arena, r->header, r->out);
}

Err record_read(const char *path, Arena *a, json_t **header, RecordList *out) {
    return file_visit(path, (size_t)1 << FILE_SHIFT, parse_file, &(ReadArgs){a, header, out});
}
