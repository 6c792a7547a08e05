// PlanChecker: a policy that forwards every decision to another one and keeps its own accounts of
// what the actions take: nothing may be held twice, and gangs stay whole. The simulator's view has
// to match the accounts.
#pragma once

#include "cluster/sim/cluster_run.h"

enum { PLAN_CHECKER_SLICES = 16 };

typedef struct CheckedStep {
    TimeNs       at;
    ClusterVerb  verb;
    uint32_t     job, n_slices;
    ClusterSlice slices[PLAN_CHECKER_SLICES];  // with masks and parts filled in
} CheckedStep;

typedef struct CheckedJob {
    uint32_t     n;  // 0: it does not run
    ClusterSlice slices[PLAN_CHECKER_SLICES];
} CheckedJob;

typedef struct CheckedServer {
    int64_t  cores_milli, memory_mib, part[CLUSTER_GPUS];  // free
    uint32_t n[CLUSTER_GPUS];                              // jobs
} CheckedServer;

typedef struct PlanChecker {
    const ClusterPolicy *inner;
    const void          *settings, *loaded;
    const JobList       *jobs;
    CheckedJob          *held;     // [jobs->n]
    CheckedServer       *servers;  // by the accounts
    uint32_t            *running, n_running;
    CheckedStep         *log;  // [room] the first steps
    uint32_t             n, room;
    uint64_t             steps, levels, stops, shared;
} PlanChecker;

// Wraps the run's policy and logs its first actions.
void plan_checker_open(PlanChecker *a, ClusterRun *run, uint32_t room, Arena *arena);
