// Crew: jobs spread over threads, each thread with an arena of its own; the first failure ends all.
#pragma once

#include "base/arena.h"
#include "base/progress.h"

typedef struct CrewJobs {
    Err (*run)(void *self, uint32_t i, Arena *a);  // what it takes from the arena is its own
    void     *self;
    uint32_t  n;         // jobs; they are begun in order
    Progress *progress;  // told `worth` steps after each; NULL: nobody listens
    int64_t   worth;
} CrewJobs;

MUST_USE Err crew_run(const CrewJobs *jobs, uint32_t threads);

uint32_t crew_size(int64_t asked);  // threads; 0 asks for as many as we have cores
