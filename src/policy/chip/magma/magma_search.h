// MagmaGroup: jobs that are scheduled together, and what comes of a genome: layers on units that
// share the memory's bandwidth.
#pragma once

#include "policy/chip/common/layer_plan.h"

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
    uint32_t jobs, depth;    // at most, and layers of a task
    double   safety_factor;  // see feasibility_factor
} MagmaShape;

// Tasks that run, then those of an order.
void magma_group_fill(MagmaGroup *g, const ChipView *v, TaskQueue *line, const MagmaShape *shape);

MagmaScore magma_group_decode(const MagmaGroup *g, const MagmaGenome *x);

// MagmaSearch: a population of genomes that is bred for a while.

enum { MAGMA_POPULATION = 128 };

typedef struct MagmaParams {
    uint32_t population, evaluations;
    double   elite, parents;        // shares of the population
    double   single, range, whole;  // chances of crossovers: one row, both rows, a unit's jobs
    double   mutation;              // chance of a gene
    double   late;                  // what a chain that is late costs, in periods of makespan
} MagmaParams;

typedef struct MagmaSearch {
    MagmaParams cfg;
    MagmaGenome at[2][MAGMA_POPULATION];  // a generation, and the next one
    uint32_t    n_known;                  // genomes it begins with
    Rng         rng;
} MagmaSearch;

void magma_search_carve(MagmaSearch *s, uint32_t population, Carve *from);

// Room for a genome to begin with. There are at least 2.
MagmaGenome *magma_search_known(MagmaSearch *s);

// Returns the best genome and adds what it took to ops.
const MagmaGenome *magma_search_run(MagmaSearch *s, const MagmaGroup *g, double *ops);
