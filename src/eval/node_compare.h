// Tournament: policies meet the same arrivals on one mix; finds what each can carry.
#pragma once

#include "base/term.h"
#include "eval/node_scenario.h"
#include "report/contest.h"

typedef struct NodeCompareParams {
    double   target, calm;  // see Contest
    double   equal_share[CONTEST_EQUALS];
    double   tolerance;
    uint64_t first_seed;
    uint32_t seeds, requests, threads;  // requests 0: see NodeTraffic
} NodeCompareParams;

enum { NODE_COMPARE_SEARCH = 8 };  // a search counts as much as so many single runs

// Steps that the sink is told for one mix.
uint32_t node_compare_steps(uint32_t n_policies, const NodeCompareParams *r);

// In virtual time runs go on at once on threads, and the result does not depend
// on how many; live ones take turns, so that all policies meet the machine's moods alike.
MUST_USE Err node_compare_run(const NodeScenario *s, const NodeChoices *c, const char *baseline,
                              const NodeCompareParams *r, Progress *p, Arena *a, ContestMix *out);
