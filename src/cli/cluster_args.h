// Options of the cluster commands: a job trace and a part of it (TraceArgs), a scenario to compare
// on (ClusterScenarioArgs), one run (ClusterSimArgs).
#pragma once

#include <jansson.h>

#include "cli/args.h"
#include "cluster/cluster_scenario.h"
#include "eval/trace_run.h"

#define CLUSTER_INFORMATION_ARG(to_)                                                               \
    {                                                                                              \
        "information", ARG_TEXT, to_, "SET[,KEY=VALUE]",                                           \
            "what policies are told: perfect, realistic or blind, then settings such as "          \
            "profiles=library,sigma=0.2 (default perfect)",                                        \
            0, 0                                                                                   \
    }
#define CLUSTER_ESTIMATOR_ARG(to_)                                                                 \
    {                                                                                              \
        "estimator", ARG_TEXT, to_, "KIND[:FILE]",                                                 \
            "estimator that refines what policies are told: off, on (by hand), attention or "      \
            "both, "                                                                               \
            "with weights of FILE (default off)",                                                  \
            0, 0                                                                                   \
    }

// Reads that option; weights are those of FILE, or the shipped ones.
MUST_USE Err cluster_estimator_read(const char *text, Arena *a, Information *out);

enum { TRACE_ARG_ROWS = 14, TRACE_ARG_SOME = 9 };

typedef struct TraceArgs {
    const char *format, *unit, *rates, *gpu_type;
    TraceWindow window;
} TraceArgs;

void trace_args_rows(TraceArgs *t, ArgRow *rows);  // TRACE_ARG_ROWS of them
void trace_args_some(TraceArgs *t, ArgRow *rows);  // TRACE_ARG_SOME: without those of windows

MUST_USE Err trace_args_options(const TraceArgs *t, Arena *a, JobTraceOptions *out);
MUST_USE Err trace_args_read(const TraceArgs *t, const char *path, Arena *a, JobList *out);

// ClusterScenarioArgs: options that describe a cluster scenario: trace, servers, load, job classes.

typedef struct ClusterScenarioArgs {
    const char *trace, *servers, *load;  // lists for commands that compare cells
    const char *profiles, *mix, *information, *estimator;
    int64_t     gpus, cores, memory_gb, jobs, max_s;
    TraceArgs   file;
} ClusterScenarioArgs;

enum { CLUSTER_SCENARIO_ARG_ROWS = 12 + TRACE_ARG_SOME };

// Sets the defaults and writes the rows, for the array that args_parse takes.
void cluster_scenario_args_rows(ClusterScenarioArgs *x, ArgRow rows[CLUSTER_SCENARIO_ARG_ROWS]);

// Everything but trace, servers and load.
MUST_USE Err cluster_scenario_args_common(const ClusterScenarioArgs *x, Arena *a,
                                          ClusterScenarioSpec *out);

// ClusterSimArgs: the options of one run of a job trace, of `cluster simulate` and `cluster
// explain`.

typedef struct ClusterSimArgs {
    TraceArgs   part;
    ArgList     sets;
    const char *trace, *servers, *policy, *like, *profiles, *mix, *information, *estimator;
    int64_t     nodes, gpus, seed, cores, memory_gb;
    double      error;
} ClusterSimArgs;

enum { CLUSTER_SIM_OWN_ROWS = 15, CLUSTER_SIM_ARG_ROWS = CLUSTER_SIM_OWN_ROWS + TRACE_ARG_ROWS };

// Sets the defaults and writes the rows, for the array that args_parse takes.
void         cluster_sim_args_rows(ClusterSimArgs *x, ArgRow rows[CLUSTER_SIM_ARG_ROWS]);
MUST_USE Err cluster_sim_args_spec(const ClusterSimArgs *x, Arena *a, TraceRunSpec *out);

// The options as a run file keeps them, and from one.
json_t      *cluster_sim_args_json(const ClusterSimArgs *x);
MUST_USE Err cluster_sim_args_read(const char *path, Arena *a, ClusterSimArgs *out);
