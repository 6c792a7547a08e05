// ClusterScenario: what a comparison or a training is about: a trace, servers, classes of jobs, and
// which jobs come for a seed.
//
// Of a trace that is read, a seed draws a window. Windows to choose and to train by (seeds below
// CLUSTER_SCENARIO_MEASURE, and from CLUSTER_SCENARIO_TRAIN on) lie in the first 60 % of its time,
// those to measure by in the rest, so that nothing is measured on what anybody has seen. Of
// "synth:NAME" a seed makes a trace.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "cluster/profile/profiles.h"
#include "cluster/server_list.h"
#include "cluster/trace/synth.h"
#include "cluster/trace/job_trace.h"

enum {
    CLUSTER_SCENARIO_MEASURE = 100,
    CLUSTER_SCENARIO_TRAIN = 1000000,
    CLUSTER_SCENARIO_RACK = 16,
    CLUSTER_SCENARIO_JOBS_PER_SERVER = 50
};
#define CLUSTER_SCENARIO_JOBS  UINT32_MAX  // CLUSTER_SCENARIO_JOBS_PER_SERVER for each server
#define CLUSTER_SCENARIO_MAX_S INT64_C(86400)

typedef struct ClusterScenarioSpec {
    const char     *trace;    // a file, a name, or synth:NAME
    const char     *format;   // NULL: auto
    JobTraceOptions options;  // of the file
    const char     *servers;  // how many, or a file; NULL: 8
    ServerSpec      like;     // of so many; 0 GPUs: 8; 0 cores, 0 memory: 3 and 62.5 GB a GPU, 12
                              // and 96 where jobs say what they want
    const char *profiles;     // files, parted by commas, over the shipped ones; none; NULL: shipped
    const char *mix;          // of jobs without a model; NULL: the classes' own weights
    uint32_t    jobs;         // of a draw; 0: the whole trace, times and all
    double      load;         // GPU time asked for by what there is while jobs come; 0: as it is
    int64_t     max_s;        // longer jobs are left out; 0: none are
} ClusterScenarioSpec;

typedef struct ClusterScenario {  // never changes, so that threads may share it
    const char      *trace;
    ServerList       servers;
    ClusterProfiles *profiles;  // settled on the servers' share; NULL: every rate is 1
    const char      *mix;
    JobList          jobs;   // of the file, those that may be drawn
    bool             made;   // by `synth` rather than read
    bool             typed;  // servers say what GPUs they have
    SynthSettings    synth;
    uint32_t         n_jobs;                // of a draw; 0: all
    uint32_t         split;                 // first of the jobs to measure by
    uint32_t         long_ones, too_large;  // left out: above max_s, fit no servers
    double           load;
    int64_t          max_s;
    uint64_t         cores_milli, memory_mib;  // of all servers
} ClusterScenario;

typedef struct ClusterScenarioDraw {
    JobList   jobs;                  // the first comes at 0
    uint32_t *class_of;              // [jobs.n]; NULL: no profiles
    uint32_t  long_ones, too_large;  // left out
} ClusterScenarioDraw;

MUST_USE Err cluster_scenario_open(const ClusterScenarioSpec *spec, Arena *a, ClusterScenario *out);
MUST_USE Err cluster_scenario_draw(const ClusterScenario *s, uint64_t seed, Arena *a,
                                   ClusterScenarioDraw *out);

// Files parted by commas, folded over the shipped classes, or alone; settled on the servers' share.
// "default" stands for the shipped ones; "none": *out is NULL.
MUST_USE Err cluster_scenario_profiles(const char *files, bool alone, const ServerList *l, Arena *a,
                                       ClusterProfiles **out);

double cluster_scenario_load(const JobList *l, uint64_t gpus);  // 0 when all come at once
