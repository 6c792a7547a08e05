// JobEventLog: events of jobs in a run: arrival, start with placement, resize, preemption, end.
#pragma once

#include <stdio.h>

#include "cluster/sim/cluster_run.h"

#define JOB_EVENT_ALL_JOBS UINT32_MAX

typedef enum JobEventKind {  // order at one instant
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
    uint32_t            job;     // index in the job list
    uint32_t            order;   // of recording
    uint32_t            n;       // slices; START and LEVEL only
    const ClusterSlice *slices;  // as placed by the simulator
} JobEvent;

typedef struct JobEventLog {
    const ClusterRun *run;
    Arena            *arena;
    JobEvent         *at;
    uint32_t          n, room, only;
    bool              full;  // out of memory
} JobEventLog;

const char *job_event_name(JobEventKind k);

// only: a job, or JOB_EVENT_ALL_JOBS. `own` must not be the run's arena, which is rewound.
void job_event_log_open(JobEventLog *d, const ClusterRun *run, uint32_t only, Arena *own);
// A ClusterRun.after callback; self is the JobEventLog.
void job_event_log_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n);
MUST_USE Err job_event_log_close(JobEventLog         *d,
                                 const ClusterResult *r);  // adds arrivals and ends, sorts by time

void job_event_log_write(const JobEventLog *d, FILE *f);  // JSON lines
