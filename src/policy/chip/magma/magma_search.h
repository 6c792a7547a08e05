// MagmaGroup: jobs that are scheduled together, and the simulation of a genome on units that share
// the memory's bandwidth.
// MagmaSearch: a genetic search over genomes.
#pragma once

#include "policy/chip/common/layer_plan.h"

enum { MAGMA_JOBS = 256, MAGMA_CHAINS = 64 };

typedef struct MagmaChain {  // the next layers of one task, one after the other
    uint32_t task, layer;    // of its first job
    uint32_t first, n;       // jobs
    float    left, rest;     // ns to the deadline; that the layers after the last job need
} MagmaChain;

typedef struct MagmaBusy {  // a unit
    float    ns, bytes_ns;  // that its layer still takes alone; its demand
    uint32_t chain;         // CHIP_NONE: the layer belongs to no chain
} MagmaBusy;

typedef struct MagmaGroup {
    const ChipSetup *setup;
    const ChipCost  *costs[MAGMA_JOBS];  // [job][kind]
    MagmaChain       chains[MAGMA_CHAINS];
    MagmaBusy        busy[CHIP_UNITS];  // at the start; ns 0: free
    uint32_t         n_jobs, n_chains;
} MagmaGroup;

typedef struct MagmaGenome {
    uint8_t *kind;      // [job]
    float   *priority;  // [job] highest first
    double   cost;
} MagmaGenome;

typedef struct MagmaScore {
    float    makespan;
    uint32_t late;   // chains that miss their deadline
    uint32_t steps;  // of the simulation
} MagmaScore;

typedef struct MagmaGroupLimits {
    uint32_t jobs, depth;    // jobs in all; layers of a task
    double   safety_factor;  // see feasibility_factor
} MagmaGroupLimits;

// Running tasks, then those of a queue, which is emptied as far as they fit.
void magma_group_fill(MagmaGroup *g, const ChipView *v, TaskQueue *q,
                      const MagmaGroupLimits *limits);

MagmaScore magma_group_decode(const MagmaGroup *g, const MagmaGenome *x);

enum { MAGMA_POPULATION = 128 };

typedef struct MagmaParams {
    uint32_t population, evaluations;
    double   elite, parents;      // shares of the population
    double single, range, whole;  // probabilities of crossovers: one row, both rows, a kind's jobs
    double mutation;              // probability of a gene
    double late;                  // cost of a late chain, in periods of makespan
} MagmaParams;

typedef struct MagmaSearch {
    MagmaParams cfg;
    MagmaGenome at[2][MAGMA_POPULATION];  // the generation and the next one
    uint32_t    n_known;                  // genomes that the search starts from
    Rng         rng;
} MagmaSearch;

void magma_search_carve(MagmaSearch *s, uint32_t population, Carve *from);

// Memory for a genome to start from; there is room for at least 2.
MagmaGenome *magma_search_known(MagmaSearch *s);

// Returns the best genome; adds the operations spent to *ops.
const MagmaGenome *magma_search_run(MagmaSearch *s, const MagmaGroup *g, double *ops);
