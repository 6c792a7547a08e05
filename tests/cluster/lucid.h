// Lucid: a slow reference of its published simulator, second by second.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef enum LucidPolicy {
    LUCID_FIFO,
    LUCID_SJF,
    LUCID_QSSF,  // with true durations
    LUCID_SRTF,
    LUCID_TIRESIAS,
    LUCID_POLICIES
} LucidPolicy;

typedef struct LucidJob {
    int64_t  submit, duration;   // whole seconds; a duration is at least 1
    int64_t  start, end, queue;  // results: first start, end, seconds spent waiting
    uint32_t gpus;
    uint32_t preemptions;  // result
} LucidJob;

// Jobs are in order of submission. False, without a run: they are not, or a job can never run.
bool lucid_run(LucidPolicy policy, uint32_t nodes, uint32_t gpus_per_node, LucidJob *jobs,
               uint32_t n, Arena *a);
