// JobExplanation: what became of one job in a run of a cluster, and what would have with one thing
// changed.
#pragma once

#include "base/term.h"
#include "cli/cluster_sim_args.h"
#include "cli/what_if.h"
#include "cluster/sim/why.h"

enum { JOB_CHANGES = 32 };

typedef struct JobExplanation {
    Arena        *arena, *kept;  // the run's; what outlives it
    TraceRun      play;
    ClusterResult result;
    JobEventLog   log;
    Why          *why;
    uint32_t      job;
    WhatIf        changes[JOB_CHANGES];
    uint32_t      n_changes;
    Progress      progress;  // of trying changes
    bool          shown;
} JobExplanation;

static inline const ClusterEnd *job_explanation_end(const JobExplanation *s) {
    return &s->result.ends[s->job];
}

MUST_USE Err job_explanation_print(const JobExplanation *s);
MUST_USE Err job_explanation_json(const JobExplanation *s, int *code);
