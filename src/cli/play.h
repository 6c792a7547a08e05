// Play: one run of a trace on a cluster, as options name it; what simulates and what explains
// share.
#pragma once

#include "cli/cluster_choice.h"
#include "cli/trace_args.h"
#include "cluster/diary.h"
#include "cluster/run.h"

typedef struct PlayArgs {
    TraceArgs   part;
    ArgList     sets;
    const char *trace, *servers, *policy, *like, *profiles, *mix;
    int64_t     nodes, gpus, seed, cores, memory_gb;
    double      error;
} PlayArgs;

enum { PLAY_OWN_ROWS = 13, PLAY_ROWS = PLAY_OWN_ROWS + TRACE_ARG_ROWS };

typedef struct Play {  // does not move: the run refers to it
    JobList        jobs;
    ServerList     servers;
    ClusterChoices choices;  // one
    const char    *like;
    ClusterRun     run;
} Play;

// Sets the defaults and writes the rows, for the array that args_parse takes.
void         play_rows(PlayArgs *x, ArgRow rows[PLAY_ROWS]);
MUST_USE Err play_open(const PlayArgs *o, Arena *a, Play *x);

// Who decides, by the same rules; what a policy reads is read for the run as it is now.
MUST_USE Err play_choose(const Play *p, const ClusterChoice *c, Arena *a, ClusterRun *run);

// Records begin with the options, so that the run can be had again; as a file, or compared with
// one.
MUST_USE Err play_record(const PlayArgs *x, const Diary *d, const char *path);
MUST_USE Err play_recorded(const char *path, Arena *a, PlayArgs *out);  // the options alone
MUST_USE Err play_compare(const PlayArgs *x, const Diary *d, const char *path, Arena *scratch);
