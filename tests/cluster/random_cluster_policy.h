// RandomPolicy: a policy of random legal actions: starts jobs on any GPUs with any amounts, beside
// co-runners where both fit, preempts and resizes them.
#pragma once

#include "contract/cluster.h"

enum { RANDOM_SERVERS = 6, RANDOM_GPUS = 8 };

typedef struct RandomPolicySettings {
    bool busy;  // acts on most jobs in every call
} RandomPolicySettings;

extern const ClusterPolicy random_cluster_policy;
