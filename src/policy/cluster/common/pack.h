// Pack: several tasks of equal width on the same GPUs: who may, how they divide the cores and the
// memory there, how fast each would be, and the changes to a builder.
//
// Rates are what a profile's pairs say, which stand for what would be measured. Tasks of no class,
// or that ask for a part of a GPU only, have no company.
#pragma once

#include "contract/rate.h"
#include "policy/cluster/common/plan_builder.h"

enum { PACK_MOST = 4 };  // tasks on one GPU

typedef struct PackSplit {          // between PACK_MOST tasks or fewer, as they were named
    double cores_milli[PACK_MOST];  // for each GPU
    double mib[PACK_MOST];
    double rate[PACK_MOST];  // against what each has by default, alone
    double sum;              // of rates
} PackSplit;

// Whole GPUs, as many, of types that suit both, and both fit into the memory of a GPU.
bool pack_may(const ClusterSetup *s, const ClusterJob *a, const ClusterJob *b);

// Divides cores and memory for each GPU so that the sum of weight x rate is large: the best that
// points of the profiles allow for two, nearly that for more. Nobody is more than twice as slow as
// with an equal part. weight NULL: all 1.
void pack_split(const ClusterSetup *s, const ClusterJob *const *jobs, uint32_t n,
                double cores_milli, double mib, const double *weight, PackSplit *out);

// The same for a joiner beside a holder that has a place on the builder, from what the holder has
// and what is free there (no more than the joiner's default). false: they may not.
bool pack_try(const PlanBuilder *d, uint32_t holder, uint32_t joiner, PackSplit *out);

// The holder is levelled, the joiner put onto the same GPUs, half of each. false: as before.
bool pack_join(PlanBuilder *d, uint32_t holder, uint32_t joiner, const PackSplit *x);

// A task that has a place but a part of its GPUs only, and is alone there by now.
bool pack_alone(const PlanBuilder *d, uint32_t slot);
void pack_restore(PlanBuilder *d,
                  uint32_t     slot);  // whole GPUs, and its default as far as that is free

// A running task that shares the first GPU of a running one; CLUSTER_NONE: nobody does.
uint32_t pack_corunner(const ClusterView *v, uint32_t slot);

// How fast a job would be alone with so much for each of its GPUs; 1 with its default.
double pack_speed(const ClusterSetup *s, const ClusterJob *j, double cores_milli, double mib);
