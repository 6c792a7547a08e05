// IterationTimes: duration of one iteration by model and GPUs, for traces with work in iterations.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"

typedef struct IterationTime {
    const char *model;
    uint32_t    gpus;
    double      iteration_s;
    int64_t     iterations;  // of a job, where the trace does not state them; 0: unknown
} IterationTime;

typedef struct IterationTimes {
    IterationTime *at;
    uint32_t       n;
} IterationTimes;

// Columns model,gpus,iteration_s[,iterations]; or Gavel's gpu_type,model,scale_factor,steps_per_s
// (rows of gpu_type, NULL: v100); or Synergy's set,model,gpus,...,iter_time_s (set "models"). A
// folder is Pollux': iterations at its smallest batch, by its goodput (cluster/pollux_tables.h).
MUST_USE Err iteration_times_read(const char *path, const char *gpu_type, Arena *a,
                                  IterationTimes *out);
MUST_USE Err iteration_times_parse(const char *name, const char *text, size_t len,
                                   const char *gpu_type, Arena *a, IterationTimes *out);

// For `gpus`, else the largest number below, else the smallest above; NULL: unknown model.
const IterationTime *iteration_times_find(const IterationTimes *r, const char *model,
                                          uint32_t gpus);
