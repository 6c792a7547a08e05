// JobExplanation: why one job of a cluster run waited, and how long it would have waited with one
// thing changed.
#pragma once

#include "base/term.h"
#include "cluster/sim/job_event_log.h"
#include "cluster/sim/why.h"
#include "eval/what_if.h"

enum { JOB_CHANGES = 32 };

typedef struct JobExplanation {
    Arena        *arena, *kept;  // of the run; of what outlives it
    Progress     *progress;      // of trying changes; NULL: none is shown
    TraceRun      run;
    ClusterResult result;
    JobEventLog   log;
    Why          *why;
    uint32_t      job;
    WhatIf        changes[JOB_CHANGES];
    uint32_t      n_changes;
} JobExplanation;

static inline const ClusterEnd *job_explanation_end(const JobExplanation *s) {
    return &s->result.ends[s->job];
}

// Runs the trace and observes the job of that name, or the one that waited longest (NULL).
// all_jobs: the log has the events of every job.
MUST_USE Err job_explanation_observe(const TraceRunSpec *spec, const char *job, bool all_jobs,
                                     JobExplanation *s);

enum { JOB_CHANGES_EXPECTED = 8 };  // steps of the progress bar

// Repeats the run with one thing changed at a time: fewer GPUs, cores, memory, more servers, other
// policies (a list).
MUST_USE Err job_explanation_try_changes(const char *policies, JobExplanation *s);
