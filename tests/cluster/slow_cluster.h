// SlowCluster: progress of jobs under given actions, computed the obvious way: at every event every
// running job's rate is looked up in the tables again.
#pragma once

#include "tests/cluster/plan_checker.h"

typedef struct SlowCluster {
    // Largest error of the work done when a job ended, in ns of work per change of its rate,
    // beyond what its last nanosecond does.
    double   worst;
    double   least_rate, most_rate;
    uint32_t ended, changes;
} SlowCluster;

SlowCluster slow_cluster_follow(const ClusterRun *run, const PlanChecker *checker,
                                const ClusterResult *r, Arena *arena);
