// Saga: a run on disk: what ran, with what was known of its networks, and its records.
#pragma once

#include "cli/scene.h"

typedef struct Saga {
    Scene      scene;  // to be simulated; no target is left open
    Choice     choice;
    uint64_t   seed;
    uint32_t   skip;
    bool       live;
    Arrivals   arrivals;
    RecordList records;
    ArgList    sets;  // of the policy
} Saga;

// sets: what --set said, which is all that differs from the policy's defaults.
MUST_USE Err saga_write(const char *path, const Scene *s, const NodeRun *run, const ArgList *sets,
                        const RecordList *records);
MUST_USE Err saga_read(const char *path, Arena *a, Saga *out);

// A trace for Perfetto.
MUST_USE Err saga_trace(const char *path, const Scene *s, const char *policy,
                        const RecordList *records, Arena *scratch);
