// RunFile: a run on disk: what ran, with what was known of its networks, and its records.
#pragma once

#include "eval/node_scenario.h"

typedef struct RunFile {
    NodeScenario scenario;  // to be simulated; no target is left open
    NodeChoice   choice;
    uint64_t     seed;
    uint32_t     skip;
    bool         live;
    Arrivals     arrivals;
    RecordList   records;
    ArgList      sets;  // of the policy
} RunFile;

// sets: what --set said, which is all that differs from the policy's defaults.
MUST_USE Err run_file_write(const char *path, const NodeScenario *s, const NodeRun *run,
                            const ArgList *sets, const RecordList *records);
MUST_USE Err run_file_read(const char *path, Arena *a, RunFile *out);

// A trace for Perfetto.
MUST_USE Err run_file_trace(const char *path, const NodeScenario *s, const char *policy,
                            const RecordList *records, Arena *scratch);
