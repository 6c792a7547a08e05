// RandomPolicy: starts jobs on random GPUs with random amounts, colocates, preempts and resizes
// them.
#pragma once

#include "contract/cluster.h"

enum { RANDOM_SERVERS = 6, RANDOM_GPUS = 8 };

typedef struct RandomPolicySettings {
    bool busy;  // acts on most jobs in every call
} RandomPolicySettings;

extern const ClusterPolicy random_cluster_policy;
