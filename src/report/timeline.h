// Timeline: the records of a run as a trace for Perfetto or chrome://tracing, one track per core or
// unit.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/record.h"

typedef struct Timeline {
    const char        *title;
    const char *const *tenants;  // [n_tenants] names
    uint32_t           n_tenants, n_cores;
    const char *const *track_names;  // [n_cores]; NULL: "core 0", "core 1", ...
    // Name of a layer; NULL: its number.
    const char *(*layer)(const void *self, uint32_t tenant, uint32_t layer);
    const void *self;
    bool        requests;  // write each as an asynchronous slice from arrival to end
    size_t      most;      // limit of bytes, a few hundred at least; 0: none
    uint64_t    lost;      // records that were dropped; stated in the trace
} Timeline;

// Records are in order of time. Events beyond `most` bytes are left out, which otherData states.
MUST_USE Err timeline_write(FILE *f, const Timeline *t, const RecordList *records, Arena *scratch);
