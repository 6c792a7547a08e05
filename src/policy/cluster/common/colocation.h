// ColocationIndex: tasks with whole GPUs to themselves, and which of them a joiner of the same
// width best shares GPUs with: the one with the largest joint rate.
#pragma once

#include "policy/cluster/common/pack.h"

typedef struct ColocationIndex {
    PlanBuilder *builder;
    uint32_t    *holders;  // [n_slots]
    uint32_t     n;        // holders
    double      *joint;    // [classes][classes] sum of rates on a GPU's default share; 0: unknown
    uint32_t     n_classes;
    uint64_t     misfits[PROFILE_CLASSES];  // bit g: joiners of g GPUs found no holder in this plan
} ColocationIndex;

void   colocation_carve(ColocationIndex *l, const ClusterSetup *s, Carve *from);
void   colocation_open(ColocationIndex *l, PlanBuilder *d);           // with all running holders
void   colocation_add(ColocationIndex *l, uint32_t slot);             // a task placed since
double colocation_joint(ColocationIndex *l, uint32_t a, uint32_t b);  // classes; 0: no fit

typedef struct ColocationParams {
    double min_sum;   // of the rates of a pair
    double min_rate;  // of either
    // NULL: all pairs are allowed.
    bool (*may)(const void *self, const ClusterJob *holder, const ClusterJob *joiner);
    const void *self;
} ColocationParams;

// Puts the joiner onto the best holder's GPUs and returns the holder; CLUSTER_NONE: there is none.
uint32_t colocation_join(ColocationIndex *l, uint32_t joiner, const ColocationParams *p);
