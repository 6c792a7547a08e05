// ClusterScenarioArgs: options that describe a cluster scenario: trace, servers, load, job classes.
#pragma once

#include "cli/trace_args.h"
#include "cluster/cluster_scenario.h"

typedef struct ClusterScenarioArgs {
    const char *trace, *servers, *load;  // lists for commands that compare cells
    const char *profiles, *mix;
    int64_t     gpus, cores, memory_gb, jobs, max_s;
    TraceArgs   file;
} ClusterScenarioArgs;

enum { CLUSTER_SCENARIO_ARG_ROWS = 10 + TRACE_ARG_SOME };

// Sets the defaults and writes the rows, for the array that args_parse takes.
void cluster_scenario_args_rows(ClusterScenarioArgs *x, ArgRow rows[CLUSTER_SCENARIO_ARG_ROWS]);

// Everything but trace, servers and load.
MUST_USE Err cluster_scenario_args_common(const ClusterScenarioArgs *x, Arena *a,
                                          ClusterScenarioSpec *out);
