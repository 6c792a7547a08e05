// Audit: a policy that hands every question on to another and keeps books of its own of what that
// one's steps take, one step after the other: nothing may be held twice, and gangs stay whole. The
// engine's view has to be what the books say.
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
    AuditServer         *servers;  // as they are by the books
    uint32_t            *running, n_running;
    AuditStep           *log;  // [room] the first steps
    uint32_t             n, room;
    uint64_t             steps, levels, stops, shared;
} Audit;

// Puts itself between run and its policy; a log of so many steps.
void audit_open(Audit *a, ClusterRun *run, uint32_t room, Arena *arena);
