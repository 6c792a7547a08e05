// Lodge: tasks that have whole GPUs to themselves, and which of them is the best host for a guest
// of the same width: the one with which both together get most done.
#pragma once

#include "policy/cluster/pack.h"

typedef struct Lodge {
    Draft    *draft;
    uint32_t *hosts;  // [n_slots]
    uint32_t  n;
    double   *worth;  // [classes][classes] sum of rates on a GPU's default share; 0: not known yet
    uint32_t  n_classes;
    uint64_t  hopeless[PROFILE_CLASSES];  // bit g: guests of g GPUs found no host in this plan
} Lodge;

void   lodge_carve(Lodge *l, const ClusterSetup *s, Carve *from);
void   lodge_open(Lodge *l, Draft *d);                 // with those that run on the draft
void   lodge_add(Lodge *l, uint32_t slot);             // one that was placed since
double lodge_worth(Lodge *l, uint32_t a, uint32_t b);  // of two classes; 0: they do not fit

typedef struct LodgeRule {
    double gain;     // rates of a pair must sum to at least this
    double slowest;  // and neither may be below this
    // Whether a host and a guest are allowed; NULL: all are.
    bool (*may)(const void *of, const ClusterJob *host, const ClusterJob *guest);
    const void *of;
} LodgeRule;

// The host that was found, which has the guest by then; CLUSTER_NONE: there is none.
uint32_t lodge_join(Lodge *l, uint32_t guest, const LodgeRule *rule);
