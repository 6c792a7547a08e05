// Record: one event of a run. Reports, replays and explanations read records and nothing else.
//
// On disk a run is JSON lines: a header object that says what ran, then one object a record.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/cores.h"
#include "base/err.h"
#include "base/json.h"

typedef enum RecordKind {
#define X(id, name) RECORD_##id,
#include "sim/record_kind.def"
#undef X
    RECORD_KINDS
} RecordKind;

typedef enum Outcome { OUTCOME_MET, OUTCOME_LATE, OUTCOME_REJECTED, OUTCOMES } Outcome;

typedef struct Record {
    TimeNs      at;
    RecordKind  kind;
    uint64_t    request;  // by order of arrival
    uint32_t    tenant;
    TimeNs      deadline;         // ARRIVE
    uint32_t    first, n_layers;  // START, GROW (from which layer on), END
    uint32_t    wanted;           // START: cores
    Cores       cores;            // START, END: of the block; GROW: added
    uint32_t    level;            // START, LEVEL
    uint64_t    versions;         // START: a hash of the block's versions
    Outcome     outcome;          // FINISH, REJECT
    const char *why;  // of a miss, or REFUSE: what was wrong with a plan. NULL otherwise
} Record;

// Where records go. A zeroed sink drops them.
typedef struct RecordSink {
    void (*put)(void *self, const Record *r);
    void *self;
} RecordSink;

static inline void record_put(RecordSink s, const Record *r) {
    if (s.put != NULL) s.put(s.self, r);
}

// All records of a run, in memory.
typedef struct RecordList {
    Arena   *arena;
    Record  *at;
    uint32_t n, room;
} RecordList;

RecordSink record_list(RecordList *l);  // collects, in l->arena

const char  *record_kind_name(RecordKind k);
const char  *outcome_name(Outcome o);
MUST_USE Err record_write_header(FILE *f, const json_t *header);
MUST_USE Err record_write(FILE *f, const Record *r);
// A whole file, or none.
MUST_USE Err record_save(const char *path, const json_t *header, const RecordList *records);
// A whole file; errors name the line. The header is the caller's, texts and records the arena's.
MUST_USE Err record_read(const char *path, Arena *a, json_t **header, RecordList *out);
MUST_USE Err record_parse(const char *name, const char *text, size_t len, Arena *a, json_t **header,
                          RecordList *out);

// What the kinds of records have in a file, beside the time.

enum {
    RECORD_HAS_REQUEST = 1,  // and its tenant
    RECORD_HAS_DEADLINE = 2,
    RECORD_HAS_BLOCK = 4,   // first and n_layers
    RECORD_HAS_WANTED = 8,  // and versions
    RECORD_HAS_CORES = 16,
    RECORD_HAS_LEVEL = 32,
    RECORD_HAS_OUTCOME = 64,
};

uint32_t record_fields(RecordKind k);
