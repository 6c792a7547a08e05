// JobExplanation: why one job of a cluster run waited, and how long it would have waited with one
// thing changed.
#pragma once

#include "base/term.h"
#include "cluster/sim/belief_log.h"
#include "cluster/sim/job_event_log.h"
#include "cluster/sim/why.h"
#include "eval/trace_run.h"

typedef enum WhatKind {
    WHAT_SERVERS,  // more servers like the first
    WHAT_GANG,     // half the GPUs, for twice as long
    WHAT_CORES,    // half the cores
    WHAT_MEMORY,   // half the memory
    WHAT_TYPE,     // any type of GPU
    WHAT_POLICY,
} WhatKind;

typedef struct WhatIf {
    WhatKind            kind;
    uint32_t            servers;  // WHAT_SERVERS: how many more
    const PolicyChoice *choice;   // WHAT_POLICY; NULL otherwise
    const char         *text;     // describes the change; set by what_if_run
    ClusterEnd          end;      // of the job; set by what_if_run
} WhatIf;

// Jobs submitted after `until`, the end of the job in the original run, are left out: they cannot
// delay it.
MUST_USE Err what_if_run(const TraceRun *p, uint32_t job, TimeNs until, Arena *a, WhatIf *w);

enum { JOB_CHANGES = 32 };

typedef struct JobExplanation {
    Arena        *arena, *kept;  // of the run; of what outlives it
    Progress     *progress;      // of trying changes; NULL: none is shown
    TraceRun      run;
    ClusterResult result;
    JobEventLog   log;
    Why          *why;
    BeliefLog    *beliefs;  // NULL: information is perfect
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
