// UnsettledPolicy: a policy that gives way to a fresh one of a list now and then, each of which
// sees classes that change from call to call.
#pragma once

#include "cluster/sim/cluster_run.h"

typedef struct UnsettledPolicy {
    const ClusterPolicy *const *inner;     // [n]
    const void *const          *settings;  // [n]
    const void *const          *loaded;    // [n]
    uint32_t                    n, at;
    uint32_t                    stay;  // mean number of calls before another takes over
    bool                        scramble;
    Rng                         rng;
    void                       *state;
    size_t                      bytes;
    ClusterTask                *tasks;  // a copy with other classes
    const ClusterSetup         *setup;
    uint64_t                    switches;
} UnsettledPolicy;

// Wraps the run's policy; the first of the list begins.
void unsettled_policy_open(UnsettledPolicy *x, ClusterRun *run, Arena *a);
