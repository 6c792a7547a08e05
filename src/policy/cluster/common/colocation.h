// ColocationIndex: tasks that have whole GPUs to themselves, and which of them is the best holder
// for a joiner of the same width: the one with which both together get most done.
#pragma once

#include "policy/cluster/common/pack.h"

typedef struct ColocationIndex {
    PlanBuilder *builder;
    uint32_t    *holders;  // [n_slots]
    uint32_t     n;
    double  *worth;  // [classes][classes] sum of rates on a GPU's default share; 0: not known yet
    uint32_t n_classes;
    uint64_t hopeless[PROFILE_CLASSES];  // bit g: guests of g GPUs found no holder in this plan
} ColocationIndex;

void   colocation_carve(ColocationIndex *l, const ClusterSetup *s, Carve *from);
void   colocation_open(ColocationIndex *l, PlanBuilder *d);  // with those that run on the builder
void   colocation_add(ColocationIndex *l, uint32_t slot);    // one that was placed since
double colocation_worth(ColocationIndex *l, uint32_t a,
                        uint32_t b);  // of two classes; 0: they do not fit

typedef struct ColocationParams {
    double gain;     // rates of a pair must sum to at least this
    double slowest;  // and neither may be below this
    // Whether a holder and a joiner are allowed; NULL: all are.
    bool (*may)(const void *of, const ClusterJob *holder, const ClusterJob *joiner);
    const void *of;
} ColocationParams;

// The holder that was found, which has the joiner by then; CLUSTER_NONE: there is none.
uint32_t colocation_join(ColocationIndex *l, uint32_t joiner, const ColocationParams *rule);
