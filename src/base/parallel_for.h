// parallel_for: independent jobs on threads, each thread with a scratch arena of its own.
//
// Jobs start in ascending order, and no result may depend on which thread ran a job: one thread and
// many give the same bytes. After the first failure no further job starts.
#pragma once

#include "base/arena.h"
#include "base/term.h"

typedef struct ParallelFor {
    Err (*run)(void *self, uint32_t i, Arena *scratch);  // scratch is emptied after each job
    void     *self;
    uint32_t  n;               // jobs
    Progress *progress;        // advanced after each job; may be NULL
    int64_t   progress_steps;  // per job
} ParallelFor;

// The calling thread is one of `threads`; fewer run if the system cannot start as many.
MUST_USE Err parallel_for(const ParallelFor *jobs, uint32_t threads);

uint32_t parallel_threads(int64_t requested);  // 0: the cores of the CPU budget
