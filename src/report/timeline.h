// Timeline: a run's records as a trace for Perfetto or chrome://tracing, one track a core or unit.
#pragma once

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
} Timeline;

MUST_USE Err timeline_write(FILE *f, const Timeline *t, const RecordList *records, Arena *scratch);
