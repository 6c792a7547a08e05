// Growth: cores and memory of a server go, step by step along the ladders of their classes, to the
// tasks there that gain most by them for what it takes.
//
// Tasks alone on whole GPUs of one server grow; all others keep what they have. Only servers on
// which something has changed since are looked at.
#pragma once

#include "contract/pace.h"
#include "policy/cluster/draft.h"

enum { GROWTH_TASKS = CLUSTER_GPUS };

typedef struct GrowthSeen {  // of a server, when it was last looked at
    uint32_t cores_milli, memory_mib;
} GrowthSeen;

typedef struct Growth {
    GrowthSeen *seen;   // [n_servers]
    bool       *dirty;  // [n_servers]
    uint32_t   *first;  // [n_servers] of those that the draft starts there
    uint32_t   *next;   // [n_slots]
    bool        lean;   // begin at the lowest rung; otherwise at the default
    double (*gain)(const void *of, const ClusterView *v, uint32_t slot, double from, double to);
    const void *of;
} Growth;

void growth_carve(Growth *g, const ClusterSetup *s, Carve *from);

bool growth_may(const Draft *d, uint32_t slot);

// What it begins with, for each GPU.
void growth_base(const Growth *g, const ClusterSetup *s, const ClusterJob *j, double *cores_milli,
                 double *mib);

// Everybody that runs goes down to its base, so that there is place for others.
void growth_yield(Growth *g, Draft *d);

// The last change to a draft: those that yielded have their own again; where something has changed,
// everything is given out anew.
void growth_run(Growth *g, Draft *d);
