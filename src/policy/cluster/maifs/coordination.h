// Coordination: assigns jobs to agents that compete for them, where gangs need several agents.
//
// An agent claims one job or none. A claim gives a job some of the units it needs; a job is served
// when its claims give all of them. The result serves a job wholly or not at all and has no
// needless claim. Parts that can be combined: agents that contest a job pass max-plus messages
// along a graph; agents draw their claims; claims are arbitrated; losers bid again; and centrally,
// an auction and directly built gangs compete with arbitration, the best result wins, and claims
// are re-priced by the pair payoffs of all others. A payoff that is not finite marks an impossible
// claim.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/carve.h"

#define COORD_NONE UINT32_MAX
enum {
    COORD_JOBS = UINT16_MAX,  // jobs in a problem, at most
    COORD_RANK = 8,
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

typedef enum CoordParts {
    COORD_UNRANKED = 1,  // arbitration by the agents' order instead of their payoffs
    COORD_MESSAGES = 2,  // along the graph
    COORD_DRAWN = 4,     // claims are drawn by the softmax of scores; else each agent's best
    COORD_REBIDS = 8,    // losers bid again
    COORD_CENTRAL = 16,  // auction, built gangs and re-pricing; the best of all results
} CoordParts;

// Payoffs are relative to the largest gain of any claim over idling, so parameters have no unit.
typedef struct CoordParams {
    uint32_t parts;
    uint32_t degree;       // neighbours of an agent, at most
    uint32_t iterations;   // of message passing: an agent sends degree x iterations messages
    uint32_t rebids;       // rounds of new bids
    float    temperature;  // of the softmax that predicts conflicts
    float    draw;         // of the softmax that claims are drawn by
    float    least;        // claims less likely than this contest no job
    float    penalty;      // of two claims on a job that one of them serves
    float    bonus;        // of two claims on a job that needs both
    float    damping;      // part of the old message that is kept
    float    step;         // of the auction's bids
    uint64_t seed;         // of drawn claims
} CoordParams;

typedef enum CoordMethod { COORD_ARBITRATED, COORD_REBID, COORD_AUCTION, COORD_GANGS } CoordMethod;

typedef struct CoordStats {       // of the last decision
    uint32_t    agents, edges;    // agents with a possible claim; edges of the graph
    CoordMethod method;           // with the best result
    double      value, baseline;  // payoff of the result; with one arbitration and no messages
} CoordStats;

typedef struct Coordination Coordination;

static inline CoordParams coord_default_params(void) {
    return (CoordParams){.parts = COORD_REBIDS | COORD_CENTRAL,
                         .degree = 8,
                         .iterations = 6,
                         .rebids = 8,
                         .temperature = 0.1f,
                         .draw = 0.1f,
                         .least = 0.01f,
                         .penalty = 1,
                         .bonus = 0.1f,
                         .damping = 0.5f,
                         .step = 0.01f};
}

// The parts that `word` of coord_kind.def names; false: there is no such word.
bool        coord_parts_of(const char *word, uint32_t *parts);
const char *coord_words(void);  // all of them

// For up to `agents` and `jobs`; returns NULL while memory is only counted.
Coordination *coord_carve(uint32_t agents, uint32_t jobs, const CoordParams *params, Carve *from);

void coord_decide(Coordination *a, const CoordProblem *p,
                  uint32_t *claims);  // [agents] job, or none

const CoordStats *coord_stats(const Coordination *a);
