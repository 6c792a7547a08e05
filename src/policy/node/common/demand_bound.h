// DemandBound: whether what was promised leaves room for one more, by cores and by bytes moved, at
// every deadline there is.
#pragma once

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum { DEMAND_BOUND_MAX = 256 };

typedef struct DemandItem {
    TimeNs deadline;
    double core_ns, bytes;  // that are still to be spent on it
} DemandItem;

typedef struct DemandBound {
    DemandItem at[DEMAND_BOUND_MAX];  // by deadline
    uint32_t   n;
    double     cores, bytes_ns;  // that there are to be spent
} DemandBound;

void demand_bound_clear(DemandBound *d, double cores, double bytes_ns);
void demand_bound_add(DemandBound *d, DemandItem x);  // what does not fit into the list is left out

// Whether all deadlines hold with x as well, if everything were spread perfectly.
bool demand_bound_admits(const DemandBound *d, TimeNs now, DemandItem x);
