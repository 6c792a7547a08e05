// MuriPlacer: groups of tasks on the GPUs of a builder: who is together, and how they come
// together.
#pragma once

#include "policy/cluster/common/pack.h"

typedef struct MuriPlacer {
    PlanBuilder  *builder;
    ClusterSlice *base, *own;  // [n_servers] of the group that is being seated
    bool          by_need;     // who needs least has most of cores and memory
    double        slowest;     // rate of one that has company, at least
} MuriPlacer;

void muri_place_carve(MuriPlacer *m, const ClusterSetup *s, Carve *from);

// A running task and all that share its GPUs, itself first. Returns how many.
uint32_t muri_place_corunners(const ClusterView *v, uint32_t slot, uint32_t corunners[PACK_MOST]);
bool     muri_place_together(const ClusterView *v, uint32_t a, uint32_t b);  // both run

// All of a group onto the GPUs of the first, which has a place; cores and memory are divided anew.
// Who else is there has been stopped. If somebody would be too slow, the first alone has a place.
void muri_place_group(MuriPlacer *m, const uint32_t *slots, uint32_t n);

// As it was when the plan began, if all of that is still free.
bool muri_place_back(MuriPlacer *m, uint32_t slot);
