// Crew: jobs spread over threads, each thread with an arena of its own; the first failure ends all.
#pragma once

#include "base/arena.h"
#include "base/term.h"

typedef struct ParallelFor {
    Err (*run)(void *self, uint32_t i, Arena *a);  // what it takes from the arena is its own
    void     *self;
    uint32_t  n;         // jobs; they are begun in order
    Progress *progress;  // told `worth` steps after each; NULL: nobody listens
    int64_t   worth;
} ParallelFor;

MUST_USE Err parallel_for(const ParallelFor *jobs, uint32_t threads);

uint32_t parallel_threads(int64_t asked);  // threads; 0 asks for as many as we have cores
