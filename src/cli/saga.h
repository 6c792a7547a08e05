// Saga: a run on disk: what ran, with what was known of its networks, and its records.
#pragma once

#include "cli/venue.h"

typedef struct Saga {
    Venue      venue;  // to be simulated; no target is left open
    Choice     choice;
    uint64_t   seed;
    uint32_t   skip;
    bool       live;
    Arrivals   arrivals;
    RecordList records;
    ArgList    sets;  // of the policy
} Saga;

// sets: what --set said, which is all that differs from the policy's defaults.
MUST_USE Err saga_write(const char *path, const Venue *s, const NodeRun *run, const ArgList *sets,
                        const RecordList *records);
MUST_USE Err saga_read(const char *path, Arena *a, Saga *out);

// A trace for Perfetto.
MUST_USE Err saga_trace(const char *path, const Venue *s, const char *policy,
                        const RecordList *records, Arena *scratch);
