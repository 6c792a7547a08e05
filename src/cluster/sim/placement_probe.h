// PlacementProbe: whether a job has place on what servers have free, as policies place gangs, and
// what is missing if not.
#pragma once

#include "contract/cluster.h"

typedef struct PlacementProbe {  // what is free, in copies
    const ClusterSetup *setup;
    uint32_t           *gpus;   // [servers] wholly free
    uint32_t           *cores;  // [servers]
    uint32_t           *memory;
    uint16_t           *parts;  // [all GPUs]
    uint32_t           *first;  // [servers] of parts
    uint32_t           *order;  // [servers]
} PlacementProbe;

typedef struct PlacementRelax {  // what does not count
    bool any_type, no_cores, no_memory, any_company;
} PlacementRelax;

MUST_USE Err placement_probe_init(PlacementProbe *s, const ClusterSetup *setup, Arena *a);
void         placement_probe_open(PlacementProbe *s, const ClusterView *v);
void         placement_probe_give(PlacementProbe *s, const ClusterTask *t);  // as if it did not run

// v: who is on the GPUs; needed where profiles say that not everybody goes with everybody.
bool placement_probe_fits(PlacementProbe *s, const ClusterView *v, const ClusterJob *j,
                          PlacementRelax ask);

// What is missing, by what would do: GPUs in all (thousandths), GPUs on one server; cores or memory
// on a server that has the GPUs. -1: cannot be said.
int64_t placement_probe_lacks_gpus(const PlacementProbe *s, const ClusterJob *j);
int64_t placement_probe_lacks_together(const PlacementProbe *s, const ClusterJob *j);
int64_t placement_probe_lacks_cores(const PlacementProbe *s, const ClusterJob *j);
int64_t placement_probe_lacks_memory(const PlacementProbe *s, const ClusterJob *j);
