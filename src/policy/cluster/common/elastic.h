// ElasticScaling: cores and memory of a server go, step by step along the ladders of their classes,
// to the tasks there that gain most by them for what it takes.
//
// Tasks alone on whole GPUs of one server grow; all others keep what they have. Only servers on
// which something has changed since are looked at.
#pragma once

#include "contract/rate.h"
#include "policy/cluster/common/plan_builder.h"

enum { ELASTIC_TASKS = CLUSTER_GPUS };

typedef struct ElasticSeen {  // of a server, when it was last looked at
    uint32_t cores_milli, memory_mib;
} ElasticSeen;

typedef struct ElasticScaling {
    ElasticSeen *seen;   // [n_servers]
    bool        *dirty;  // [n_servers]
    uint32_t    *first;  // [n_servers] of those that the builder starts there
    uint32_t    *next;   // [n_slots]
    bool         lean;   // begin at the lowest level; otherwise at the default
    double (*gain)(const void *of, const ClusterView *v, uint32_t slot, double from, double to);
    const void *of;
} ElasticScaling;

void elastic_carve(ElasticScaling *g, const ClusterSetup *s, Carve *from);

bool elastic_may(const PlanBuilder *d, uint32_t slot);

// What it begins with, for each GPU.
void elastic_base(const ElasticScaling *g, const ClusterSetup *s, const ClusterJob *j,
                  double *cores_milli, double *mib);

// Everybody that runs goes down to its base, so that there is place for others.
void elastic_shrink(ElasticScaling *g, PlanBuilder *d);

// The last change to a builder: those that yielded have their own again; where something has
// changed, everything is given out anew.
void elastic_run(ElasticScaling *g, PlanBuilder *d);
