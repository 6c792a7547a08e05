// TraceRun: one run of a job trace on a cluster, as `cluster simulate` and `cluster explain` name
// it.
#pragma once

#include "cluster/sim/cluster_run.h"
#include "cluster/trace/job_trace.h"
#include "eval/policy_choice.h"

typedef struct TraceRunSpec {
    const char         *trace, *format;
    JobTraceOptions     options;
    const char         *servers;  // a file; NULL: n_servers of server
    uint32_t            n_servers;
    ServerSpec          server;
    const char         *policy;
    const ArgList      *sets;
    const char         *like;      // simulator to follow: lucid, synergy, muri, own, or auto
    const char         *profiles;  // of job classes: default, or files; NULL: all jobs are alike
    const char         *mix;       // of classes, for jobs without a model; NULL: their weights
    uint64_t            seed;
    double              error;  // of predicted durations; 0: as information says
    Information         information;
    const StopOptions  *stops;
    const TenantShares *tenants;
} TraceRunSpec;

typedef struct TraceRun {  // does not move: the run refers to it
    JobList            jobs;
    ServerList         servers;
    PolicyChoice       choice;
    const char        *like;  // never auto
    const StopOptions *stops;
    ClusterRun         run;
} TraceRun;

// Fails if the window leaves no job.
MUST_USE Err trace_run_jobs(const char *path, const char *format, const JobTraceOptions *o,
                            Arena *a, JobList *out);
MUST_USE Err trace_run_open(const TraceRunSpec *spec, Arena *a, TraceRun *out);

// Another policy for `run`, which may have other jobs and servers than p; loads its weights.
MUST_USE Err trace_run_choose(const TraceRun *p, const PolicyChoice *c, Arena *a, ClusterRun *run);
