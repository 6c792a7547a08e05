// MuriMatch: which tasks of equal width are to take turns on the same GPUs, so that all together
// ask for no more than there is.
//
// Units are merged two by two, those that get most done together first, in rounds: tasks into
// pairs, pairs into fours. What a group gets done hangs on its classes alone, so that units of the
// same classes are interchangeable and taken in order.
#pragma once

#include "policy/cluster/common/pack.h"

enum { MURI_CACHE = 1 << 14, MURI_KINDS = 1024, MURI_EDGES = 1 << 16 };

typedef struct MuriUnit {
    uint32_t at[PACK_MOST];  // slots, by order
    uint32_t n, gpus, types, key;
    uint32_t next;  // of its kind
    bool     gone;  // merged into another
} MuriUnit;

typedef struct MuriKind {  // units that are interchangeable
    uint32_t gpus, types, key;
    uint32_t first, last;
} MuriKind;

typedef struct MuriEdge {
    uint32_t a, b;  // kinds
    double   worth;
} MuriEdge;

typedef struct MuriMatch {
    const ClusterSetup *setup;
    MuriUnit           *units;  // [n_slots] by order of their first
    uint32_t            n_units;
    uint64_t            milli;  // thousandths of GPUs that the units ask for
    uint32_t           *keys;   // [MURI_CACHE] classes of groups
    float              *sums;   // their rates, summed
    MuriKind           *kinds;
    MuriEdge           *edges;
    uint32_t            n_kinds, n_edges;
    bool                by_stages;
    double              gain;
    uint32_t            most;  // tasks in a group
} MuriMatch;

void muri_match_carve(MuriMatch *m, const ClusterSetup *s, Carve *from);
void muri_match_open(MuriMatch *m);
void muri_match_add(MuriMatch *m, const ClusterTask *tasks, const uint32_t *slots, uint32_t n);

// Merges until no more is asked for than `milli`, or nothing is worth it.
void muri_match_run(MuriMatch *m, uint64_t milli);

// What tasks of these classes (six bits and one each, ascending) get done on a GPU's share, all
// together; 0: they do not fit.
double muri_match_sum(MuriMatch *m, uint32_t key);

// The same by their stages: each is at another stage of its iteration all the time.
double muri_match_turns(const ClusterProfiles *p, const uint32_t *classes, uint32_t n);
