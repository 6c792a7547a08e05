// Usage: how something goes over time, in a fixed number of spans that widen as time goes on.
#pragma once

#include "cluster/run.h"

typedef struct Usage {
    ClusterUse now;    // since `until`
    TimeNs     until;  // all before it is summed up
    TimeNs     origin, span;
    ClusterUse sums[CLUSTER_SPANS];  // times nanoseconds
    uint32_t   n;
} Usage;

void usage_open(Usage *c, TimeNs origin);
void usage_go(Usage *c, TimeNs to);  // what is now has been so since the last call
// Averages; writes what it has into at[CLUSTER_SPANS].
ClusterUse usage_close(Usage *c, ClusterUse *at, uint32_t *n, TimeNs *span);
