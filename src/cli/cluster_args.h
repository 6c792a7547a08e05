// Options of the cluster commands: a job trace and a part of it (TraceArgs), a scenario to compare
// on (ClusterScenarioArgs), one run (ClusterSimArgs).
#pragma once

#include <jansson.h>
#include <stdio.h>

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
            "estimator that refines what policies are told: off, own, shared, attention or both, " \
            "the last two with weights of FILE (default off)",                                     \
            0, 0                                                                                   \
    }

// Reads that option; weights are those of FILE, or the shipped ones.
MUST_USE Err cluster_estimator_read(const char *text, Arena *a, Information *out);

#define CLUSTER_TENANT_ARGS(to_)                                                                   \
    {"quota",                                                                                      \
     ARG_TEXT,                                                                                     \
     &(to_)->quota,                                                                                \
     "T=GPUS,...",                                                                                 \
     "GPUs of tenants: 16 guaranteed and at most, 8..24, 8.. or ..24 (default: no limits)",        \
     0,                                                                                            \
     0},                                                                                           \
    {                                                                                              \
        "weights", ARG_TEXT, &(to_)->weights, "T=W,...", "weights of tenants (default: 1)", 0, 0   \
    }
#define CLUSTER_STOP_ARGS(to_)                                                                     \
    {"min-run",                                                                                    \
     ARG_INT,                                                                                      \
     &(to_)->min_run_s,                                                                            \
     "S",                                                                                          \
     "seconds that a job runs before it is preempted (default 300; 0 with --like lucid, synergy)", \
     0,                                                                                            \
     INT32_MAX},                                                                                   \
    {                                                                                              \
        "max-stops", ARG_INT, &(to_)->max_stops, "N",                                              \
            "preemptions of a job, at most; 0: any number (default 4; any with --like lucid, "     \
            "synergy)",                                                                            \
            0, INT32_MAX                                                                           \
    }

enum { TRACE_ARG_ROWS = 16, TRACE_ARG_SOME = 11 };

typedef struct TraceArgs {
    const char *format, *unit, *rates, *gpu_type, *elastic;
    TraceWindow window;
    bool        any_type;
} TraceArgs;

void trace_args_rows(TraceArgs *t, ArgRow *rows);  // TRACE_ARG_ROWS of them
void trace_args_some(TraceArgs *t, ArgRow *rows);  // TRACE_ARG_SOME: without those of windows

// Rows of a trace that are not jobs, by reason: one line, or an object; nothing if there are none.
void    print_left_out(FILE *f, const JobList *l);
json_t *left_out_json(const JobList *l);

MUST_USE Err trace_args_options(const TraceArgs *t, Arena *a, JobTraceOptions *out);
MUST_USE Err trace_args_read(const TraceArgs *t, const char *path, Arena *a, JobList *out);

// ClusterScenarioArgs: options that describe a cluster scenario: trace, servers, load, job classes.

typedef struct ClusterScenarioArgs {
    const char *trace, *servers, *load;  // lists for commands that compare cells
    const char *profiles, *mix, *information, *estimator;
    int64_t     gpus, cores, memory_gb, jobs, max_s;
    StopOptions stops;
    const char *quota, *weights;  // of tenants
    TraceArgs   file;
} ClusterScenarioArgs;

enum { CLUSTER_SCENARIO_ARG_ROWS = 16 + TRACE_ARG_SOME };

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
    StopOptions stops;
    const char *quota, *weights;  // of tenants
    double      error;
} ClusterSimArgs;

enum { CLUSTER_SIM_OWN_ROWS = 19, CLUSTER_SIM_ARG_ROWS = CLUSTER_SIM_OWN_ROWS + TRACE_ARG_ROWS };

// Sets the defaults and writes the rows, for the array that args_parse takes.
void         cluster_sim_args_rows(ClusterSimArgs *x, ArgRow rows[CLUSTER_SIM_ARG_ROWS]);
MUST_USE Err cluster_sim_args_spec(const ClusterSimArgs *x, Arena *a, TraceRunSpec *out);

// The options as a run file keeps them, and from one.
json_t      *cluster_sim_args_json(const ClusterSimArgs *x);
MUST_USE Err cluster_sim_args_read(const char *path, Arena *a, ClusterSimArgs *out);
