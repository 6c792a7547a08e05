// ClusterVariant: the same jobs on a changed cluster or under another policy, with what they cost.
#pragma once

#include "eval/trace_run.h"

typedef struct GpuPrices {  // per GPU hour
    double      any;        // of types that are not listed; negative: none
    uint32_t    n;
    const char *type[PROFILE_TYPES];
    double      price[PROFILE_TYPES];
} GpuPrices;

typedef struct WhatIfSpec {
    TraceRunSpec base;
    const char  *gpu_type;    // of the servers of the base, on which durations were measured; NULL:
                              // as the servers say, durations are on the profiles' first type
    const ArgList   *tries;   // each CHANGE[,CHANGE...]
    const GpuPrices *prices;  // NULL: no costs
} WhatIfSpec;

typedef struct ClusterVariant {
    const char    *label, *policy;
    const char    *error;      // why it cannot run; NULL: it ran
    uint32_t       too_large;  // jobs that do not fit its servers
    uint32_t       servers;
    uint64_t       gpus, preemptions;
    ClusterSummary summary;
    double         use;                          // of GPUs, until the last job ends
    double         gpu_hours, cost;              // held by jobs
    double         owned_gpu_hours, owned_cost;  // of all GPUs until the last job ends
} ClusterVariant;

typedef struct WhatIfTable {
    const char     *trace, *like;
    JobList         jobs;
    ClusterVariant *at;  // [n] the base first
    uint32_t        n;
} WhatIfTable;

// text: "2.5", or "V100=2.5,T4=0.4".
MUST_USE Err gpu_prices_read(const char *text, Arena *a, GpuPrices *out);

// A change: servers=N|+N|-N, gpu=TYPE|OLD:NEW, policy=NAME, weight:TENANT=W, POLICY.KEY=VALUE. A
// variant that cannot run says so in its row; an error of the base or of a change fails.
MUST_USE Err whatif_run(const WhatIfSpec *spec, Arena *a, WhatIfTable *out);
