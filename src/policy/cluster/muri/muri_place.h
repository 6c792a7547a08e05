// MuriPlacer: puts groups of tasks onto the same GPUs in a plan.
#pragma once

#include "policy/cluster/common/pack.h"

typedef struct MuriPlacer {
    PlanBuilder  *builder;
    ClusterSlice *base, *own;  // [n_servers] of the group being placed
    bool          by_need;     // tasks near their end get more cores and memory
    double        min_rate;    // of a task that shares GPUs
} MuriPlacer;

void muri_place_carve(MuriPlacer *m, const ClusterSetup *s, Carve *from);

// A running task and all that share exactly its GPUs, itself first. Returns the number.
uint32_t muri_place_corunners(const ClusterView *v, uint32_t slot, uint32_t corunners[PACK_MOST]);
bool     muri_place_together(const ClusterView *v, uint32_t a,
                             uint32_t b);  // both run on the same GPUs

// Puts a group onto the GPUs of its first task, which has some, and divides cores and memory anew.
// Others on these GPUs must have been stopped. If any rate would be below min_rate, only the first
// task is placed.
void muri_place_group(MuriPlacer *m, const uint32_t *slots, uint32_t n);

// Puts a task back where it runs, if all of that is still free.
bool muri_place_back(MuriPlacer *m, uint32_t slot);
