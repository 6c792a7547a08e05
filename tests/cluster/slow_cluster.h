// SlowCluster: progress of jobs under given actions, computed the obvious way: at every event every
// running job's rate is looked up in the tables again.
#pragma once

#include "tests/cluster/audit.h"

typedef struct SlowCluster {
    // In nanoseconds of work, at the times when jobs ended: what the worst had left, or had done
    // too much, beyond what it does in a last nanosecond; for every change of its rate.
    double   worst;
    double   least_rate, most_rate;
    uint32_t ended, changes;
} SlowCluster;

SlowCluster slow_cluster_follow(const ClusterRun *run, const Audit *audit, const ClusterResult *r,
                                Arena *arena);
