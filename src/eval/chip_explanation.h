// ChipExplanation: one decision of relmas: what it saw, what it weighed, what it chose.
#pragma once

#include "chip/sim/chip_run.h"
#include "policy/chip/relmas/relmas.h"

enum { EXPLAIN_TASKS = 64, EXPLAIN_PAIRS = EXPLAIN_TASKS * CHIP_KINDS };

typedef struct ExplainedTask {
    ChipRequest       request;
    uint32_t          task, layer, unit;  // unit: that it got or waits for
    double            left_ms, rest_ms, slack_ms;
    float             worth, parts[RELMAS_TERMS];
    RelmasActorOutput says;
    bool              seen, hopeless;  // seen: by the network
    RelmasDecision    verdict;
} ExplainedTask;

typedef struct ExplainedPair {
    uint32_t task, unit;  // task: index into tasks
    float    wait_ns, fit, parts[RELMAS_TERMS];
} ExplainedPair;

typedef struct ExplainedUnit {
    uint64_t request;
    TimeNs   free_in;
    float    bytes_ns, cap;
    bool     busy;
} ExplainedUnit;

typedef struct ChipExplanation {
    uint64_t      decision, waiting;  // by number; tasks that wait
    TimeNs        now;
    float         demand;
    uint32_t      n_free, n_tasks, n_pairs, n_units, more;  // more: weighed, but not kept here
    ExplainedUnit units[CHIP_UNITS];
    ExplainedTask tasks[EXPLAIN_TASKS];  // in the order in which they took turns
    ExplainedPair pairs[EXPLAIN_PAIRS];
    // Of the window that the network read last: [n_seen][RELMAS_FEATURES]
    uint32_t n_seen;
    uint64_t seen[RELMAS_WINDOW];
    float    features[RELMAS_WINDOW * RELMAS_FEATURES];
} ChipExplanation;

typedef struct DecisionQuery {
    uint64_t decision;  // by number from 1; 0: the first that chooses between tasks
    TimeNs   from;      // not before
} DecisionQuery;

// Runs it to the end; fails when there is no such decision.
MUST_USE Err chip_explanation_find(const ChipRun *run, DecisionQuery wish, Arena *a,
                                   ChipExplanation *out);

const ExplainedPair *chip_explanation_pair(const ChipExplanation *x, uint32_t task, uint32_t unit);
