#include "sim/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/check.h"
#include "base/file.h"
#include "sim/record_int.h"

static const char *const kind_names[RECORD_KINDS] = {
#define X(id, name) [RECORD_##id] = name,
#include "sim/record_kind.def"
#undef X
};

static const char *const outcome_names[OUTCOMES] = {"met", "late", "rejected"};

const char *record_kind_name(RecordKind k) { return k < RECORD_KINDS ? kind_names[k] : "unknown"; }

const char *outcome_name(Outcome o) { return o < OUTCOMES ? outcome_names[o] : "unknown"; }

uint32_t record_fields(RecordKind k) {
    static const uint8_t of[RECORD_KINDS] = {
        [RECORD_ARRIVE] = RECORD_HAS_REQUEST | RECORD_HAS_DEADLINE,
        [RECORD_START] = RECORD_HAS_REQUEST | RECORD_HAS_BLOCK | RECORD_HAS_WANTED |
                         RECORD_HAS_CORES | RECORD_HAS_LEVEL,
        [RECORD_GROW] = RECORD_HAS_REQUEST | RECORD_HAS_BLOCK | RECORD_HAS_CORES,
        [RECORD_END] = RECORD_HAS_REQUEST | RECORD_HAS_BLOCK | RECORD_HAS_CORES,
        [RECORD_FINISH] = RECORD_HAS_REQUEST | RECORD_HAS_OUTCOME,
        [RECORD_REJECT] = RECORD_HAS_REQUEST | RECORD_HAS_OUTCOME,
        [RECORD_LEVEL] = RECORD_HAS_LEVEL,
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

// "0-3,8": ranges, so that a line stays short whatever the machine.
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

static void write_text(FILE *f, const char *key, const char *text) {
    fprintf(f, ",\"%s\":\"", key);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 32 || c == '"' || c == '\\')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

Err record_write(FILE *f, const Record *r) {
    CHECK(r->kind < RECORD_KINDS);
    uint32_t has = record_fields(r->kind);
    fprintf(f, "{\"at\":%" PRId64 ",\"kind\":\"%s\"", r->at, kind_names[r->kind]);
    if (has & RECORD_HAS_REQUEST)
        fprintf(f, ",\"request\":%" PRIu64 ",\"tenant\":%u", r->request, r->tenant);
    if (has & RECORD_HAS_DEADLINE) fprintf(f, ",\"deadline\":%" PRId64, r->deadline);
    if (has & RECORD_HAS_BLOCK) fprintf(f, ",\"first\":%u,\"n_layers\":%u", r->first, r->n_layers);
    if (has & RECORD_HAS_WANTED)
        fprintf(f, ",\"wanted\":%u,\"versions\":\"%016" PRIx64 "\"", r->wanted, r->versions);
    if (has & RECORD_HAS_CORES) write_cores(f, &r->cores);
    if (has & RECORD_HAS_LEVEL) fprintf(f, ",\"level\":%u", r->level);
    if (has & RECORD_HAS_OUTCOME) fprintf(f, ",\"outcome\":\"%s\"", outcome_name(r->outcome));
    if (r->why != NULL) write_text(f, "why", r->why);
    return fputs("}\n", f) != EOF && !ferror(f) ? ERR_OK : failed();
}

static Err write_all(FILE *f, const json_t *header, const RecordList *records) {
    TRY(record_write_header(f, header));
    for (uint32_t i = 0; i < records->n; i++) TRY(record_write(f, &records->at[i]));
    return ERR_OK;
}

Err record_save(const char *path, const json_t *header, const RecordList *records) {
    FileNew f;
    TRY(file_begin(&f, path));
    Err e = write_all(f.out, header, records);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}
