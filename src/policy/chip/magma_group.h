// MagmaGroup: jobs that are scheduled together, and what comes of a genome: layers on units that
// share the memory's bandwidth.
#pragma once

#include "policy/chip/agenda.h"

enum { MAGMA_JOBS = 256, MAGMA_CHAINS = 64 };

typedef struct MagmaChain {  // the next layers of one task, one after the other
    uint32_t task, layer;    // of its first job
    uint32_t first, n;       // jobs
    float    left, rest;     // time to the deadline; what follows its last job is taken to need
} MagmaChain;

typedef struct MagmaBusy {  // a unit
    float    ns, bytes_ns;  // alone, that its layer still takes; its demand
    uint32_t chain;         // CHIP_NONE: what runs belongs to no chain
} MagmaBusy;

typedef struct MagmaGroup {
    const ChipSetup *setup;
    const ChipCost  *costs[MAGMA_JOBS];  // [kind] of each
    MagmaChain       chains[MAGMA_CHAINS];
    MagmaBusy        busy[CHIP_UNITS];  // now; ns 0: free
    uint32_t         n_jobs, n_chains;
} MagmaGroup;

typedef struct MagmaGenome {
    uint8_t *kind;      // [job]
    float   *priority;  // [job] highest first
    double   cost;
} MagmaGenome;

typedef struct MagmaScore {
    float    makespan;
    uint32_t late;   // chains that end late, what follows them on the fastest kinds
    uint32_t steps;  // that the simulation took
} MagmaScore;

typedef struct MagmaShape {
    uint32_t jobs, depth;  // at most, and layers of a task
    double   ease;         // see hope_factor
} MagmaShape;

// Tasks that run, then those of an order.
void magma_group_fill(MagmaGroup *g, const ChipView *v, Order *line, const MagmaShape *shape);

MagmaScore magma_group_decode(const MagmaGroup *g, const MagmaGenome *x);
