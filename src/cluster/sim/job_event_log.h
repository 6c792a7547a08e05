// JobEventLog: what happened to jobs in a run: when they came, started and where, were given other
// amounts, were stopped, and ended. Told by the engine as it goes on.
#pragma once

#include <stdio.h>

#include "cluster/sim/cluster_run.h"

#define JOB_EVENT_ALL_JOBS UINT32_MAX

typedef enum JobEventKind {  // in one instant in this order
    JOB_EVENT_END,
    JOB_EVENT_CAME,
    JOB_EVENT_START,
    JOB_EVENT_LEVEL,
    JOB_EVENT_STOP,
    JOB_EVENT_KINDS
} JobEventKind;

typedef struct JobEvent {
    TimeNs              at;
    JobEventKind        kind;
    uint32_t            job;     // in the list of jobs
    uint32_t            order;   // among all
    uint32_t            n;       // START, LEVEL: of slices
    const ClusterSlice *slices;  // as the engine gave them
} JobEvent;

typedef struct JobEventLog {
    const ClusterRun *run;
    Arena            *arena;
    JobEvent         *at;
    uint32_t          n, room, only;
    bool              full;  // no memory for more
} JobEventLog;

const char *job_event_name(JobEventKind k);

// Of one job, or JOB_EVENT_ALL_JOBS. The arena is not the run's, for that one is given back.
void job_event_log_open(JobEventLog *d, const ClusterRun *run, uint32_t only, Arena *own);
// For ClusterRun.after; self is the JobEventLog.
void job_event_log_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n);
MUST_USE Err job_event_log_close(JobEventLog         *d,
                                 const ClusterResult *r);  // adds who came and ended; by time

void job_event_log_write(const JobEventLog *d, FILE *f);  // a JSON object a line
