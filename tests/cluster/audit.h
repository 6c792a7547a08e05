// Audit: a policy that forwards every decision to another one and keeps its own accounts of what
// the actions take: nothing may be held twice, and gangs stay whole. The simulator's view has to
// match the accounts.
#pragma once

#include "cluster/sim/cluster_run.h"

enum { AUDIT_SLICES = 16 };

typedef struct AuditStep {
    TimeNs       at;
    ClusterVerb  verb;
    uint32_t     job, n_slices;
    ClusterSlice slices[AUDIT_SLICES];  // with masks and parts filled in
} AuditStep;

typedef struct AuditJob {
    uint32_t     n;  // 0: it does not run
    ClusterSlice slices[AUDIT_SLICES];
} AuditJob;

typedef struct AuditServer {
    int64_t  cores_milli, memory_mib, part[CLUSTER_GPUS];  // free
    uint32_t n[CLUSTER_GPUS];                              // jobs
} AuditServer;

typedef struct Audit {
    const ClusterPolicy *of;
    const void          *settings, *loaded;
    const JobList       *jobs;
    AuditJob            *books;    // [jobs->n]
    AuditServer         *servers;  // by the accounts
    uint32_t            *running, n_running;
    AuditStep           *log;  // [room] the first steps
    uint32_t             n, room;
    uint64_t             steps, levels, stops, shared;
} Audit;

// Wraps the run's policy and logs its first actions.
void audit_open(Audit *a, ClusterRun *run, uint32_t room, Arena *arena);
