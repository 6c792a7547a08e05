// Record: one event of a run: arrival, start, growth or end of a block, completion, rejection,
// level.
//
// On disk a run is JSON lines: a header object that describes the run, then one object per record.
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
    uint64_t    request;  // number, by arrival
    uint32_t    tenant;
    TimeNs      deadline;         // ARRIVE
    uint32_t    first, n_layers;  // START, GROW (from this layer on), END
    uint32_t    wanted;           // START: cores
    Cores       cores;            // START, END: of the block; GROW: added
    uint32_t    level;            // START, LEVEL
    uint64_t    versions;         // START: a hash of the block's versions
    Outcome     outcome;          // FINISH, REJECT
    const char *why;              // reason of a miss, or of a rejected plan (REFUSE); else NULL
} Record;

// Consumer of records; a zeroed sink drops them.
typedef struct RecordSink {
    void (*put)(void *self, const Record *r);
    void *self;
} RecordSink;

static inline void record_put(RecordSink s, const Record *r) {
    if (s.put != NULL) s.put(s.self, r);
}

// The records of a run in memory.
typedef struct RecordList {
    Arena   *arena;
    Record  *at;
    uint32_t n, room;
} RecordList;

RecordSink record_list(RecordList *l);  // appends to l, in l->arena

const char  *record_kind_name(RecordKind k);
const char  *outcome_name(Outcome o);
MUST_USE Err record_write_header(FILE *f, const json_t *header);
MUST_USE Err record_write(FILE *f, const Record *r);
// Replaces path atomically.
MUST_USE Err record_save(const char *path, const json_t *header, const RecordList *records);
// Reads a file; errors name the line. The caller owns *header; records live in the arena.
MUST_USE Err record_read(const char *path, Arena *a, json_t **header, RecordList *out);
MUST_USE Err record_parse(const char *name, const char *text, size_t len, Arena *a, json_t **header,
                          RecordList *out);
