// Timeline: a run's records as a trace for Perfetto or chrome://tracing, one track a core or unit.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/record.h"

typedef struct Timeline {
    const char        *title;
    const char *const *tenants;  // [n_tenants] names
    uint32_t           n_tenants, n_cores;
    const char *const *tracks;  // [n_cores] names; NULL: cores by their number
    // The name of a layer; NULL: layers go by their number.
    const char *(*layer)(const void *self, uint32_t tenant, uint32_t layer);
    const void *self;
    bool        requests;  // each is an asynchronous slice from its arrival to its end
    size_t      most;      // bytes of text, a few hundred at least; 0: no limit
    uint64_t    lost;      // records that are missing; the trace says so
} Timeline;

// What is beyond `most` is left out, and the trace says so under otherData. records are by time.
MUST_USE Err timeline_write(FILE *f, const Timeline *t, const RecordList *records, Arena *scratch);
