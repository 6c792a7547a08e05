// TraceRun: one run of a trace on a cluster, as options name it; what simulates and what explains
// share.
#pragma once

#include "eval/cluster_choice.h"
#include "cli/trace_args.h"
#include "cluster/sim/job_event_log.h"
#include "cluster/sim/cluster_run.h"

typedef struct ClusterSimArgs {
    TraceArgs   part;
    ArgList     sets;
    const char *trace, *servers, *policy, *like, *profiles, *mix;
    int64_t     nodes, gpus, seed, cores, memory_gb;
    double      error;
} ClusterSimArgs;

enum { CLUSTER_SIM_OWN_ROWS = 13, CLUSTER_SIM_ARG_ROWS = CLUSTER_SIM_OWN_ROWS + TRACE_ARG_ROWS };

typedef struct TraceRun {  // does not move: the run refers to it
    JobList        jobs;
    ServerList     servers;
    ClusterChoices choices;  // one
    const char    *like;
    ClusterRun     run;
} TraceRun;

// Sets the defaults and writes the rows, for the array that args_parse takes.
void         trace_run_rows(ClusterSimArgs *x, ArgRow rows[CLUSTER_SIM_ARG_ROWS]);
MUST_USE Err trace_run_open(const ClusterSimArgs *o, Arena *a, TraceRun *x);

// Who decides, by the same rules; what a policy reads is read for the run as it is now.
MUST_USE Err trace_run_choose(const TraceRun *p, const ClusterChoice *c, Arena *a, ClusterRun *run);

// Records begin with the options, so that the run can be had again; as a file, or compared with
// one.
MUST_USE Err trace_run_record(const ClusterSimArgs *x, const JobEventLog *d, const char *path);
MUST_USE Err trace_run_recorded(const char *path, Arena *a,
                                ClusterSimArgs *out);  // the options alone
MUST_USE Err trace_run_compare(const ClusterSimArgs *x, const JobEventLog *d, const char *path,
                               Arena *scratch);
