// Colocation: several tasks of equal width on the same GPUs.
//
// Pack: how such tasks split cores and memory, their rates, and the changes to a plan. Rates come
// from the profile's pair rates, which stand in for a measurement. Tasks without a class or with a
// GPU fraction are never packed. ColocationIndex: the best task to share GPUs with.
#pragma once

#include "contract/rate.h"
#include "policy/cluster/common/plan_builder.h"

enum { PACK_MOST = 4 };  // tasks on one GPU

typedef struct PackSplit {          // of up to PACK_MOST tasks, in the order given
    double cores_milli[PACK_MOST];  // per GPU
    double mib[PACK_MOST];          // per GPU
    double rate[PACK_MOST];         // relative to running alone with the default amounts
    double sum;                     // of rates
} PackSplit;

// Equally many whole GPUs, a common GPU type, and both fit into a GPU's memory.
bool pack_may(const ClusterSetup *s, const ClusterJob *a, const ClusterJob *b);

// Splits cores and memory per GPU for a large sum of weight x rate: the best over the profile's
// grid points for two, near the best for more. No task is more than twice as slow as with an equal
// split. weight NULL: all 1.
void pack_split(const ClusterSetup *s, const ClusterJob *const *jobs, uint32_t n,
                double cores_milli, double mib, const double *weight, PackSplit *out);

// The same for a joiner beside a holder that has slices, from what the holder has and what is free
// there, up to the joiner's default. false: they may not share.
bool pack_try(const PlanBuilder *d, uint32_t holder, uint32_t joiner, PackSplit *out);

// Resizes the holder and puts the joiner onto half of each of its GPUs. false: nothing changes.
bool pack_join(PlanBuilder *d, uint32_t holder, uint32_t joiner, const PackSplit *x);

// The task has a part of its GPUs and no co-runner is left there.
bool pack_alone(const PlanBuilder *d, uint32_t slot);
void pack_restore(PlanBuilder *d, uint32_t slot);  // whole GPUs, default amounts as far as free

// A running task on the first GPU of a running one; CLUSTER_NONE: there is none.
uint32_t pack_corunner(const ClusterView *v, uint32_t slot);

// Rate of a job alone with these amounts per GPU; 1 with its default.
double pack_speed(const ClusterSetup *s, const ClusterJob *j, double cores_milli, double mib);

// ColocationIndex: tasks with whole GPUs to themselves, and which of them a joiner of the same
// width best shares GPUs with: the one with the largest joint rate.

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
