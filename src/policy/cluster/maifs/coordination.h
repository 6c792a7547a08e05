// Coordination: which job each agent takes when several want the same, and gangs need several
// agents.
//
// An agent claims one job or none. A claim gives a job some of the units that it needs; a job is
// served when its claims give all of them. What comes out serves a job wholly or not at all, and
// has no claim that could be left out. Agents that are likely to want the same are joined by a
// graph along which they tell each other what their choices would be worth (max-plus), then claims
// are arbitrated, losers bid again, and an auction and gangs made to measure compete with that:
// what is worth most is the answer. Numbers that are not finite mean: cannot.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/carve.h"

#define COORD_NONE UINT32_MAX
enum {
    COORD_JOBS = UINT16_MAX,  // at most
    COORD_RANK = 8,
    COORD_FULL = 64,  // agents up to which a static graph joins all; with more it is a ring
};

typedef struct CoordProblem {
    uint32_t        agents, jobs, rank;
    const float    *payoff;  // [agents][jobs] of a claim; -INFINITY: cannot
    const float    *idle;    // [agents] of claiming nothing
    const uint16_t *give;    // [agents][jobs] units that the claim gives; 0: cannot
    const uint16_t *need;    // [jobs] units; 0: nobody is wanted
    // [agents][jobs][rank] what a pair of claims k of agent i and l of j is worth besides:
    // 1/2 sum_r (left_i(k) right_j(l) + left_j(l) right_i(k)). NULL where rank is 0.
    const float *left, *right;
} CoordProblem;

typedef enum CoordGraphKind {
    COORD_DYNAMIC,  // those who are likely to clash
    COORD_STATIC,   // all, or neighbours in a ring
    COORD_NO_GRAPH,
} CoordGraphKind;

// Payoffs are measured in the largest gain of any claim over idling, so nothing depends on units.
typedef struct CoordParams {
    CoordGraphKind graph;
    uint32_t       degree;       // partners of an agent, at most; of a full graph: all
    uint32_t       iterations;   // of messages
    uint32_t       rebids;       // rounds of them; 0: losers idle
    float          temperature;  // of the choices by which clashes are foreseen
    float          least;        // chance of a clash below which two do not talk
    float          spread;       // weight of the variance of what a pair is worth in that
    float          penalty;      // of two claims on a job that one of them serves
    float          bonus;        // of two claims on a job that needs both
    float          damping;      // part of a message that stays
    float          step;         // of the auction; 0: none, and no gangs to measure
} CoordParams;

typedef enum CoordMethod { COORD_ARBITRATED, COORD_REBID, COORD_AUCTION, COORD_GANGS } CoordMethod;

typedef struct CoordStats {     // of the last decision
    uint32_t    agents, edges;  // that could claim something; of the graph
    CoordMethod way;            // that was worth most
    double      value, plain;   // of the answer; of claims arbitrated without messages or re-bids
} CoordStats;

typedef struct Coordination Coordination;

static inline CoordParams coord_default_params(void) {
    return (CoordParams){.graph = COORD_DYNAMIC,
                         .degree = 8,
                         .iterations = 6,
                         .rebids = 8,
                         .temperature = 0.1f,
                         .least = 0.01f,
                         .spread = 1,
                         .penalty = 1,
                         .bonus = 0.1f,
                         .damping = 0.5f,
                         .step = 0.01f};
}

// For up to so many agents and jobs; NULL while memory is only counted.
Coordination *coord_carve(uint32_t agents, uint32_t jobs, const CoordParams *params, Carve *from);

void coord_decide(Coordination *a, const CoordProblem *p,
                  uint32_t *claims);  // [agents] job, or none

// Payoffs of claims, of idling for the others, and of pairs along the graph of the last decision.
double coord_value(const Coordination *a, const CoordProblem *p, const uint32_t *claims);

const CoordStats *coord_stats(const Coordination *a);
