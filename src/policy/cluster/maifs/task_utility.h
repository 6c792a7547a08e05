// TaskUtility: a task as agents see it: what it can use, how fast it is with that, and what its
// progress is worth.
#pragma once

#include "contract/cluster.h"
#include "contract/cluster_profile.h"

enum { UTILITY_LEVELS = PROFILE_ALLOC_LEVELS };

typedef struct UtilityLevel {
    uint32_t cores_milli, memory_mib;  // for each GPU; of a task without GPUs: for all of it
    float    rate;
} UtilityLevel;

typedef struct TaskUtility {
    uint64_t     job;  // whose; 1 more than its number
    uint32_t     gpus, milli, class, types;
    uint32_t     n_levels, usual;
    UtilityLevel levels[UTILITY_LEVELS];  // each buys less than the one below
    float        restart_s, left_s;
    float        value;  // of a second of work, the more the sooner it is through
    bool         wide;   // more GPUs than any server has
} TaskUtility;

typedef struct UtilityParams {
    bool  fixed;  // its default demand and nothing else
    float gang;   // how much of that for each GPU, as a power
    float urge;   // how much longer jobs gain that are on the critical path
    float
        margin;   // critical is who has more left than so many times what the cluster needs for all
    float age_s;  // that count as left of a job of which nobody knows how long it takes
} UtilityParams;

// What does not change while the task lives.
void task_utility_init(TaskUtility *w, const ClusterSetup *s, const ClusterJob *j,
                       const UtilityParams *r);

// What does: drain_s is how long the cluster needs for all that is there.
void task_utility_update(TaskUtility *w, const ClusterView *v, const ClusterTask *t, double drain_s,
                         const UtilityParams *r);

// What a job counts as having left: less when it takes longer than all together.
float task_utility_effective_left(const TaskUtility *w, double drain_s, const UtilityParams *r);

static inline uint32_t task_utility_units(const TaskUtility *w, uint32_t gpus) {
    return w->gpus > 0 ? gpus : 1;
}
