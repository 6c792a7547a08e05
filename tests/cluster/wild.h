// Wild: a policy of random legal actions: starts jobs on any GPUs with any amounts, beside
// co-runners where both fit, preempts and resizes them.
#pragma once

#include "contract/cluster.h"

enum { WILD_SERVERS = 6, WILD_GPUS = 8 };

typedef struct WildSettings {
    bool busy;  // acts on most jobs in every call
} WildSettings;

extern const ClusterPolicy wild_policy;
