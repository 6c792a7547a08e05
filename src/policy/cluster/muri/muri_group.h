// MuriMatch, MuriPlacer: groups tasks of equal width onto the same GPUs until the requested GPUs
// fit, and puts the groups into a plan.
//
// Units are merged in pairs, largest joint progress first, in rounds: tasks into pairs, pairs into
// fours. A group's progress depends on its classes alone, so units of the same classes are
// interchangeable and taken in order.
#pragma once

#include "policy/cluster/common/colocation.h"

enum { MURI_CACHE = 1 << 14, MURI_KINDS = 1024, MURI_EDGES = 1 << 16 };

typedef struct MuriUnit {
    uint32_t        at[PACK_MOST];  // slots, in order
    uint32_t        n, gpus, types, key;
    const uint64_t *servers;
    uint32_t        next;  // next unit of its kind
    bool            gone;  // merged into another unit, or not granted
} MuriUnit;

typedef struct MuriKind {  // interchangeable units
    uint32_t        gpus, types, key;
    const uint64_t *servers;
    uint32_t        first, last;
} MuriKind;

typedef struct MuriEdge {
    uint32_t a, b;  // kinds
    double   worth;
} MuriEdge;

typedef struct MuriMatch {
    const ClusterSetup *setup;
    MuriUnit           *units;  // [n_slots] in the order of their first task
    uint32_t            n_units;
    uint64_t            milli;  // thousandths of GPUs that the units request
    uint32_t           *keys;   // [MURI_CACHE] hash table: classes of groups
    float              *sums;   // [MURI_CACHE] sums of their rates
    MuriKind           *kinds;
    MuriEdge           *edges;
    uint32_t            n_kinds, n_edges;
    bool                by_stages;
    double              min_gain;
    uint32_t            max_group;  // tasks
} MuriMatch;

void muri_match_carve(MuriMatch *m, const ClusterSetup *s, Carve *from);
void muri_match_open(MuriMatch *m);
void muri_match_add(MuriMatch *m, const ClusterTask *tasks, const uint32_t *slots, uint32_t n);

// Merges until the units request at most `milli`, or no merger gains enough.
void muri_match_run(MuriMatch *m, uint64_t milli);

// Sum of the rates of tasks of these classes (7 bits each, ascending) on one GPU's share of cores
// and memory; 0: they do not fit into its memory.
double muri_match_sum(MuriMatch *m, uint32_t key);

// The same from their stages, with each task in another stage of its iteration at any time.
double muri_match_turns(const ClusterProfiles *p, const uint32_t *classes, uint32_t n);

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
