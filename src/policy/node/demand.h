// Demand: whether what was promised leaves room for one more, by cores and by bytes moved, at every
// deadline there is.
#pragma once

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

enum { DEMAND_MAX = 256 };

typedef struct DemandItem {
    TimeNs deadline;
    double core_ns, bytes;  // that are still to be spent on it
} DemandItem;

typedef struct Demand {
    DemandItem at[DEMAND_MAX];  // by deadline
    uint32_t   n;
    double     cores, bytes_ns;  // that there are to be spent
} Demand;

void demand_clear(Demand *d, double cores, double bytes_ns);
void demand_add(Demand *d, DemandItem x);  // what does not fit into the list is left out

// Whether all deadlines hold with x as well, if everything were spread perfectly.
bool demand_allows(const Demand *d, TimeNs now, DemandItem x);
