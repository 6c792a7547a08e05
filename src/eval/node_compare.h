// Comparison of node policies: for each mix, the highest rate of requests that each policy serves
// in time, and its latencies at its own, at equal and at full load.
#pragma once

#include "eval/compare.h"
#include "eval/node_scenario.h"

typedef struct NodeCompareParams {
    CompareParams       common;
    NodeScenarioOptions scenario;  // the mix is set by the cell
    const char        **mixes;
    uint32_t            n_mixes;
    double              target;  // share of the requests that has to be in time
    double              calm;    // latencies are measured at this share of the highest rate
    double              equal_share[COMPARISON_EQUALS];  // equal loads, of the subject's highest
    double              tolerance;                       // of the search, as a share of the rate
    uint32_t            requests;                        // of a run; 0: see NodeTraffic
    const char         *trace;  // file for a trace of the best policy on the first mix; NULL: none
} NodeCompareParams;

// In virtual time runs go on at once on threads; live ones take turns, so that all policies meet
// the same moments of the machine.
MUST_USE Err node_compare(const NodeCompareParams *p, const PolicyChoices *c, Arena *a,
                          Comparison *out);
uint64_t     node_compare_steps(const NodeCompareParams *p, uint32_t n_policies);
