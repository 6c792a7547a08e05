// Spot: whether a job has place on what servers have free, as policies place gangs, and what is
// missing if not.
#pragma once

#include "contract/cluster.h"

typedef struct Spot {  // what is free, in copies
    const ClusterSetup *setup;
    uint32_t           *gpus;   // [servers] wholly free
    uint32_t           *cores;  // [servers]
    uint32_t           *memory;
    uint16_t           *parts;  // [all GPUs]
    uint32_t           *first;  // [servers] of parts
    uint32_t           *order;  // [servers]
} Spot;

typedef struct SpotAsk {  // what does not count
    bool any_type, no_cores, no_memory, any_company;
} SpotAsk;

MUST_USE Err spot_init(Spot *s, const ClusterSetup *setup, Arena *a);
void         spot_open(Spot *s, const ClusterView *v);
void         spot_give(Spot *s, const ClusterTask *t);  // as if it did not run

// v: who is on the GPUs; needed where profiles say that not everybody goes with everybody.
bool spot_fits(Spot *s, const ClusterView *v, const ClusterJob *j, SpotAsk ask);

// What is missing, by what would do: GPUs in all (thousandths), GPUs on one server; cores or memory
// on a server that has the GPUs. -1: cannot be said.
int64_t spot_lacks_gpus(const Spot *s, const ClusterJob *j);
int64_t spot_lacks_together(const Spot *s, const ClusterJob *j);
int64_t spot_lacks_cores(const Spot *s, const ClusterJob *j);
int64_t spot_lacks_memory(const Spot *s, const ClusterJob *j);
