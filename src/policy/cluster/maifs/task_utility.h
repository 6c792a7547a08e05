// TaskUtility: what a task gains from resources: its rate at each allocation level and the value of
// its progress.
#pragma once

#include "contract/cluster.h"
#include "contract/cluster_profile.h"

enum { UTILITY_LEVELS = PROFILE_ALLOC_LEVELS };

typedef struct UtilityLevel {
    uint32_t cores_milli, memory_mib;  // per GPU; in all for a task without GPUs
    float    rate;
} UtilityLevel;

typedef struct TaskUtility {
    uint64_t        job;  // id of the job plus 1; 0: none
    uint32_t        gpus, milli, class, types;
    const uint64_t *servers;   // of the job
    uint32_t        believed;  // class of the job when the levels were made
    uint32_t        n_levels, default_level;
    UtilityLevel    levels[UTILITY_LEVELS];  // ascending, with falling gain per resource
    float           restart_s, left_s;
    float           certainty;  // 1: left_s is exact; falls with the spread of its belief
    float           value;    // of a second of work: the reciprocal of the effective remaining time
    float           scaling;  // rate on these GPUs, relative to the submitted number
    bool            wide;     // more GPUs than any suitable server has
    bool            settled;  // it may be stopped no more, and is to share no GPU
    bool            settles;  // the same after its next start
    bool            paced;    // too early for its next stop
} TaskUtility;

typedef struct UtilityParams {
    bool  fixed;                // the default amounts are the only level
    float critical_gang_power;  // critical jobs gain by their GPUs to this power
    float critical_boost;       // exponent of the gain of critical jobs
    float uncertain_boost;      // the same where the work left is uncertain
    float margin;               // critical: more left than this many times the cluster's drain time
    bool  last_alone;           // a task that may be stopped no more shares no GPU
    float pace;                 // part of the work left per stop left before the next stop; 0: none
    bool  spread;               // beliefs count with their spread, where it is known
    float unknown_left_s;       // remaining time assumed at the start where it is unknown
} UtilityParams;

// What is constant while the belief about the task's class is.
void task_utility_init(TaskUtility *w, const ClusterSetup *s, const ClusterJob *j,
                       const UtilityParams *r);

// Remaining time and value. drain_s: time the cluster needs for all remaining work.
void task_utility_update(TaskUtility *w, const ClusterView *v, const ClusterTask *t, double drain_s,
                         const UtilityParams *r);

// Remaining time as it counts for the value: shortened for jobs on the critical path.
float task_utility_effective_left(const TaskUtility *w, double drain_s, const UtilityParams *r);

static inline uint32_t task_utility_units(const TaskUtility *w, uint32_t gpus) {
    return w->gpus > 0 ? gpus : 1;
}
