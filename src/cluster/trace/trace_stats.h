// TraceStats: summary of a trace: sizes, durations, models, tenants, GPU time.
#pragma once

#include "cluster/job.h"

typedef struct TraceGroup {  // jobs with a common property
    const char *name;
    uint32_t    gpus;  // gang size, for groups by size
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
    uint32_t    jobs, unknown, fractional, cpu_only;   // unknown: with unknown work
    TimeNs      first, last;                           // submissions
    double      work_mean_s, work_s[TRACE_QUANTILES];  // of jobs with known work; else 0
    double      gpu_seconds;
    TraceGroups sizes, models, tenants;  // sizes ascending; the others by jobs, most first
} TraceStats;

MUST_USE Err trace_stats(const JobList *l, Arena *a, TraceStats *out);

// Offered load: GPU time requested / available between first and last submission; infinite if these
// coincide.
double trace_load(const TraceStats *s, uint64_t gpus);
