// CoordCase: random coordination problems.
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "policy/cluster/maifs/coordination.h"

enum { CASE_AGENTS = 1024, CASE_JOBS = 64, CASE_RANK = 4 };

typedef struct CoordCase {
    float        payoff[CASE_AGENTS * CASE_JOBS], idle[CASE_AGENTS];
    uint16_t     give[CASE_AGENTS * CASE_JOBS], need[CASE_JOBS];
    float        left[CASE_AGENTS * CASE_JOBS * CASE_RANK];
    float        right[CASE_AGENTS * CASE_JOBS * CASE_RANK];
    CoordProblem p;
} CoordCase;

typedef struct CoordKind {  // parameters
    uint32_t agents, jobs, rank;
    double   cannot;  // fraction of impossible claims
    double   gangs;   // fraction of jobs that are gangs
    float    pairs;   // scale of pair payoffs
} CoordKind;

// A job's weight is the sum of two exponentials, its payoff for an agent 0.5 to 1.5 of that; a
// gang's claims share it.
static inline void coord_case(CoordCase *c, const CoordKind *kind, Rng *rng) {
    uint32_t agents = kind->agents, jobs = kind->jobs, rank = kind->rank;
    double   weight[CASE_JOBS];
    for (uint32_t k = 0; k < jobs; k++) {
        weight[k] = rng_exp(rng) + rng_exp(rng);
        c->need[k] = rng_unit64(rng) < kind->gangs ? (uint16_t)(2 + rng_below(rng, 15)) : 1;
    }
    for (uint32_t i = 0; i < agents; i++) {
        c->idle[i] = 0;
        for (uint32_t k = 0; k < jobs; k++) {
            uint32_t at = i * jobs + k,
                     units = c->need[k] > 1 ? 1 + (uint32_t)rng_below(rng, 8) : 1;
            bool cannot = rng_unit64(rng) < kind->cannot;
            units = units < c->need[k] ? units : c->need[k];
            double part = (double)units / c->need[k];
            c->give[at] = (uint16_t)units;
            c->payoff[at] = (float)(weight[k] * (0.5 + rng_unit64(rng)) * part);
            if (cannot) c->payoff[at] = -INFINITY;
        }
    }
    for (uint32_t x = 0; x < agents * jobs * rank; x++) {
        c->left[x] = (float)rng_normal(rng) * kind->pairs;
        c->right[x] = (float)rng_normal(rng) * kind->pairs;
    }
    c->p =
        (CoordProblem){agents, jobs, rank, c->payoff, c->idle, c->give, c->need, c->left, c->right};
}

static inline Coordination *coord_new(uint32_t agents, uint32_t jobs, const CoordParams *rules) {
    Carve count = {0};
    coord_carve(agents, jobs, rules, &count);
    Carve from = {aligned_alloc(64, (count.used + 63) / 64 * 64), 0};
    memset(from.base, 0xa5, count.used);  // memory need not be zeroed
    return coord_carve(agents, jobs, rules, &from);
}
