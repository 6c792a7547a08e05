// Wild: a policy that does at random whatever it may: it starts jobs on any GPUs with any amounts,
// beside others where both fit, stops them, and levels what they have.
#pragma once

#include "contract/cluster.h"

enum { WILD_SERVERS = 6, WILD_GPUS = 8 };

typedef struct WildSettings {
    bool busy;  // acts on most jobs in every call
} WildSettings;

extern const ClusterPolicy wild_policy;
