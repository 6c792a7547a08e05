// Muri: a slow reference of its published simulator, event by event.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef enum MuriPolicy {
    MURI_SHORTEST,
    MURI_SHORTEST_GPU,
    MURI_DLAS_GPU,
    MURI_POLICIES
} MuriPolicy;

typedef struct MuriJob {
    int64_t  submit, work, overhead;  // nanoseconds
    int64_t  start, end;              // results
    uint32_t gpus;
    uint32_t preemptions;  // result
} MuriJob;

// Jobs are in order of submission. False: a job never runs.
bool muri_run(MuriPolicy policy, uint32_t nodes, uint32_t gpus_per_node, MuriJob *jobs, uint32_t n,
              Arena *a);
