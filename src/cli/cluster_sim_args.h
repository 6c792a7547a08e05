// ClusterSimArgs: the options of one run of a job trace, of `cluster simulate` and `cluster
// explain`.
#pragma once

#include <jansson.h>

#include "cli/trace_args.h"
#include "eval/trace_run.h"

typedef struct ClusterSimArgs {
    TraceArgs   part;
    ArgList     sets;
    const char *trace, *servers, *policy, *like, *profiles, *mix;
    int64_t     nodes, gpus, seed, cores, memory_gb;
    double      error;
} ClusterSimArgs;

enum { CLUSTER_SIM_OWN_ROWS = 13, CLUSTER_SIM_ARG_ROWS = CLUSTER_SIM_OWN_ROWS + TRACE_ARG_ROWS };

// Sets the defaults and writes the rows, for the array that args_parse takes.
void         cluster_sim_args_rows(ClusterSimArgs *x, ArgRow rows[CLUSTER_SIM_ARG_ROWS]);
MUST_USE Err cluster_sim_args_spec(const ClusterSimArgs *x, Arena *a, TraceRunSpec *out);

// The options as a run file keeps them, and from one.
json_t      *cluster_sim_args_json(const ClusterSimArgs *x);
MUST_USE Err cluster_sim_args_read(const char *path, Arena *a, ClusterSimArgs *out);
