// MagmaSearch: a population of genomes that is bred for a while.
#pragma once

#include "policy/chip/magma_group.h"

enum { MAGMA_POPULATION = 128 };

typedef struct MagmaRules {
    uint32_t population, evaluations;
    double   elite, parents;        // shares of the population
    double   single, range, whole;  // chances of crossovers: one row, both rows, a unit's jobs
    double   mutation;              // chance of a gene
    double   late;                  // what a chain that is late costs, in periods of makespan
} MagmaRules;

typedef struct MagmaSearch {
    MagmaRules  rules;
    MagmaGenome at[2][MAGMA_POPULATION];  // a generation, and the next one
    uint32_t    n_known;                  // genomes it begins with
    Rng         rng;
} MagmaSearch;

void magma_search_carve(MagmaSearch *s, uint32_t population, Carve *from);

// Room for a genome to begin with. There are at least 2.
MagmaGenome *magma_search_known(MagmaSearch *s);

// Returns the best genome and adds what it took to ops.
const MagmaGenome *magma_search_run(MagmaSearch *s, const MagmaGroup *g, double *ops);
