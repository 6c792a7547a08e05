// DemandBound: an admission test by processor demand: whether all accepted work and one more
// request fit before every deadline, in core time and in memory traffic.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum { DEMAND_BOUND_MAX = 256 };

typedef struct DemandItem {
    TimeNs deadline;
    double core_ns, bytes;  // work left
} DemandItem;

typedef struct DemandBound {
    DemandItem at[DEMAND_BOUND_MAX];  // by deadline
    uint32_t   n;
    double     cores, bytes_ns;  // capacity
} DemandBound;

void demand_bound_clear(DemandBound *d, double cores, double bytes_ns);
void demand_bound_add(DemandBound *d, DemandItem x);  // ignored if the list is full

// Whether every deadline can be met with x added, assuming perfect packing.
bool demand_bound_admits(const DemandBound *d, TimeNs now, DemandItem x);
