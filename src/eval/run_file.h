// RunFile: a run on disk as JSON lines: a header object that says what ran, then one object per
// record; or as a trace for Perfetto.
#pragma once

#include "chip/chip_scenario.h"
#include "cluster/sim/job_event_log.h"
#include "eval/node_scenario.h"
#include "report/timeline.h"

// For all tiers. The header is taken.
MUST_USE Err run_file_save(const char *path, json_t *header, const RecordList *records);
MUST_USE Err run_file_save_trace(const char *path, const Timeline *t, const RecordList *records,
                                 Arena *scratch);
json_t      *run_file_sets(const ArgList *sets);  // a list of POLICY.KEY=VALUE

typedef struct NodeRunFile {
    NodeScenario scenario;  // simulated; every tenant has its target
    PolicyChoice choice;
    uint64_t     seed;
    uint32_t     skip;
    bool         live;  // it was recorded on a live machine
    Arrivals     arrivals;
    RecordList   records;
    ArgList      sets;  // of the policy
} NodeRunFile;

// In node_run_file.c. sets: what --set said, which is all that differs from the policy's defaults.
MUST_USE Err node_run_file_write(const char *path, const NodeScenario *s, const NodeRun *run,
                                 const ArgList *sets, const RecordList *records);
MUST_USE Err node_run_file_read(const char *path, Arena *a, NodeRunFile *out);
MUST_USE Err node_run_file_trace(const char *path, const NodeScenario *s, const char *policy,
                                 const RecordList *records, Arena *scratch);

// traffic: what the requests were made from; a trace has a track for each unit.
MUST_USE Err chip_run_file_write(const char *path, const ChipScenario *s, const ChipRun *run,
                                 const ChipTraffic *traffic, const ArgList *sets,
                                 const RecordList *records);
MUST_USE Err chip_run_file_trace(const char *path, const ChipScenario *s, const char *policy,
                                 const RecordList *records, Arena *scratch);

// options: the words of the command line, [["--trace","x"],...], by which the
// run can be repeated; the caller's. Records are job events.
MUST_USE Err cluster_run_file_write(const char *path, const json_t *options, const JobEventLog *d);
MUST_USE Err cluster_run_file_read(const char *path, Arena *a, json_t **options);  // new reference
// Fails if the file has other bytes than cluster_run_file_write would give it.
MUST_USE Err cluster_run_file_check(const char *path, const json_t *options, const JobEventLog *d,
                                    Arena *scratch);
