// ElasticScaling: distributes a server's cores and memory step by step along the allocation levels
// of its tasks' classes, always to the task with the most gain for the resources taken.
//
// Only tasks alone on whole GPUs of one server scale; others keep what they have. Only servers that
// changed since the last call are computed.
#pragma once

#include "contract/rate.h"
#include "policy/cluster/common/plan_builder.h"

enum { ELASTIC_TASKS = CLUSTER_GPUS };

typedef struct ElasticSeen {  // free resources of a server at the last call
    uint32_t cores_milli, memory_mib;
} ElasticSeen;

typedef struct ElasticScaling {
    ElasticSeen *seen;   // [n_servers]
    bool        *dirty;  // [n_servers]
    uint32_t    *first;  // [n_servers] list of the tasks that the plan starts there
    uint32_t    *next;   // [n_slots]
    bool         lean;   // the base is the lowest level; otherwise the default amounts
    double (*gain)(const void *self, const ClusterView *v, uint32_t slot, double from, double to);
    const void *self;
} ElasticScaling;

void elastic_carve(ElasticScaling *g, const ClusterSetup *s, Carve *from);

bool elastic_may(const PlanBuilder *d, uint32_t slot);  // the task scales

// Base amounts per GPU.
void elastic_base(const ElasticScaling *g, const ClusterSetup *s, const ClusterJob *j,
                  double *cores_milli, double *mib);

// Shrinks all running tasks to their base, to make room for others.
void elastic_shrink(ElasticScaling *g, PlanBuilder *d);

// The last change to a plan: on changed servers everything is distributed anew, on others shrunk
// tasks get back what they had.
void elastic_run(ElasticScaling *g, PlanBuilder *d);
