// Accord: which job each agent takes when several want the same, and gangs need several agents.
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

#include "policy/carve.h"

#define ACCORD_NONE UINT32_MAX
enum {
    ACCORD_JOBS = UINT16_MAX,  // at most
    ACCORD_RANK = 8,
    ACCORD_FULL = 64,  // agents up to which a static graph joins all; with more it is a ring
};

typedef struct AccordProblem {
    uint32_t        agents, jobs, rank;
    const float    *payoff;  // [agents][jobs] of a claim; -INFINITY: cannot
    const float    *idle;    // [agents] of claiming nothing
    const uint16_t *give;    // [agents][jobs] units that the claim gives; 0: cannot
    const uint16_t *need;    // [jobs] units; 0: nobody is wanted
    // [agents][jobs][rank] what a pair of claims k of agent i and l of j is worth besides:
    // 1/2 sum_r (left_i(k) right_j(l) + left_j(l) right_i(k)). NULL where rank is 0.
    const float *left, *right;
} AccordProblem;

typedef enum AccordGraphKind {
    ACCORD_DYNAMIC,  // those who are likely to clash
    ACCORD_STATIC,   // all, or neighbours in a ring
    ACCORD_NO_GRAPH,
} AccordGraphKind;

// Payoffs are measured in the largest gain of any claim over idling, so nothing depends on units.
typedef struct AccordRules {
    AccordGraphKind graph;
    uint32_t        degree;       // partners of an agent, at most; of a full graph: all
    uint32_t        iterations;   // of messages
    uint32_t        rebids;       // rounds of them; 0: losers idle
    float           temperature;  // of the choices by which clashes are foreseen
    float           least;        // chance of a clash below which two do not talk
    float           spread;       // weight of the variance of what a pair is worth in that
    float           penalty;      // of two claims on a job that one of them serves
    float           bonus;        // of two claims on a job that needs both
    float           damping;      // part of a message that stays
    float           step;         // of the auction; 0: none, and no gangs to measure
} AccordRules;

typedef enum AccordWay { ACCORD_ARBITRATED, ACCORD_REBID, ACCORD_AUCTION, ACCORD_GANGS } AccordWay;

typedef struct AccordTale {   // of the last decision
    uint32_t  agents, edges;  // that could claim something; of the graph
    AccordWay way;            // that was worth most
    double    value, plain;   // of the answer; of claims arbitrated without messages or re-bids
} AccordTale;

typedef struct Accord Accord;

static inline AccordRules accord_usual(void) {
    return (AccordRules){.graph = ACCORD_DYNAMIC,
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
Accord *accord_carve(uint32_t agents, uint32_t jobs, const AccordRules *rules, Carve *from);

void accord_decide(Accord *a, const AccordProblem *p, uint32_t *claims);  // [agents] job, or none

// Payoffs of claims, of idling for the others, and of pairs along the graph of the last decision.
double accord_value(const Accord *a, const AccordProblem *p, const uint32_t *claims);

const AccordTale *accord_tale(const Accord *a);
