// TraceStats: a trace in numbers: how many jobs, how large, how long, whose, and how much it asks.
#pragma once

#include "cluster/job.h"

typedef struct TraceGroup {  // jobs that have something in common
    const char *name;
    uint32_t    gpus;  // of a gang, when groups are sizes
    uint32_t    jobs;
    double      gpu_seconds;
} TraceGroup;

typedef struct TraceGroups {
    TraceGroup *at;
    uint32_t    n;
} TraceGroups;

enum { TRACE_QUANTILES = 9 };
extern const double trace_quantiles[TRACE_QUANTILES];  // percent

typedef struct TraceStats {
    uint32_t    jobs, unknown, fractional, cpu_only;   // unknown: whose work is
    TimeNs      first, last;                           // submissions
    double      work_mean_s, work_s[TRACE_QUANTILES];  // of jobs whose work is known; else 0
    double      gpu_seconds;
    TraceGroups sizes, models, tenants;  // sizes by GPUs; the others by their jobs, most first
} TraceStats;

MUST_USE Err trace_stats(const JobList *l, Arena *a, TraceStats *out);

// GPU time asked for by what so many GPUs have between the first and the last submission; infinite
// when that is no time.
double trace_load(const TraceStats *s, uint64_t gpus);
