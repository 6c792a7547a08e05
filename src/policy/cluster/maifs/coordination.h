// Coordination: assigns jobs to agents that compete for them, where gangs need several agents.
//
// An agent claims one job or none. A claim gives a job some of the units it needs; a job is served
// when its claims give all of them. The result serves a job wholly or not at all and has no
// needless claim. Agents likely to conflict are joined by a graph and pass max-plus messages about
// the value of their choices; then claims are arbitrated and losers bid again. An auction and
// directly built gangs compete with that, and the best result wins. A payoff that is not finite
// marks an impossible claim.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/carve.h"

#define COORD_NONE UINT32_MAX
enum {
    COORD_JOBS = UINT16_MAX,  // jobs in a problem, at most
    COORD_RANK = 8,
    COORD_FULL = 64,  // agents up to which a static graph is complete; above it is a ring
};

typedef struct CoordProblem {
    uint32_t        agents, jobs, rank;
    const float    *payoff;  // [agents][jobs] of a claim; -INFINITY: impossible
    const float    *idle;    // [agents] of claiming nothing
    const uint16_t *give;    // [agents][jobs] units the claim gives; 0: impossible
    const uint16_t *need;    // [jobs] units; 0: not on offer
    // [agents][jobs][rank] additional payoff of a pair of claims, k of agent i and l of j:
    // 1/2 sum_r (left_i(k) right_j(l) + left_j(l) right_i(k)). NULL where rank is 0.
    const float *left, *right;
} CoordProblem;

typedef enum CoordGraphKind {
    COORD_DYNAMIC,  // agents likely to conflict
    COORD_STATIC,   // complete, or neighbours in a ring
    COORD_NO_GRAPH,
} CoordGraphKind;

// Payoffs are relative to the largest gain of any claim over idling, so parameters have no unit.
typedef struct CoordParams {
    CoordGraphKind graph;
    uint32_t       degree;       // neighbours of an agent, at most; a complete graph has all
    uint32_t       iterations;   // of message passing
    uint32_t       rebids;       // rounds of new bids; 0: losers idle
    float          temperature;  // of the softmax that predicts conflicts
    float          least;        // conflict probability below which there is no edge
    float          spread;       // weight of the variance of pair payoffs in that
    float          penalty;      // of two claims on a job that one of them serves
    float          bonus;        // of two claims on a job that needs both
    float          damping;      // part of the old message that is kept
    float          step;         // of the auction's bids; 0: no auction, no built gangs
} CoordParams;

typedef enum CoordMethod { COORD_ARBITRATED, COORD_REBID, COORD_AUCTION, COORD_GANGS } CoordMethod;

typedef struct CoordStats {       // of the last decision
    uint32_t    agents, edges;    // agents with a possible claim; edges of the graph
    CoordMethod method;           // with the best result
    double      value, baseline;  // payoff of the result; with one arbitration and no messages
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

// For up to `agents` and `jobs`; returns NULL while memory is only counted.
Coordination *coord_carve(uint32_t agents, uint32_t jobs, const CoordParams *params, Carve *from);

void coord_decide(Coordination *a, const CoordProblem *p,
                  uint32_t *claims);  // [agents] job, or none

const CoordStats *coord_stats(const Coordination *a);
