// ChipExplanation: one decision of the relmas policy: its inputs, the score of every task and unit,
// and what it chose.
#pragma once

#include "chip/sim/chip_run.h"
#include "policy/chip/relmas/relmas.h"

enum { EXPLAIN_TASKS = 64, EXPLAIN_PAIRS = EXPLAIN_TASKS * CHIP_KINDS };

typedef struct ExplainedTask {
    ChipRequest       request;
    uint32_t          task, layer, unit;  // unit: where it starts or waits
    double            left_ms, rest_ms, slack_ms;
    float             score, parts[RELMAS_TERMS];
    RelmasActorOutput output;
    bool              seen, infeasible;  // seen: it was in the network's window
    RelmasDecision    outcome;
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
    uint64_t decision, waiting;  // number of the decision; tasks waiting
    TimeNs   now;
    float    demand;
    uint32_t n_free, n_tasks, n_pairs, n_units, more;  // more: tasks scored beyond EXPLAIN_TASKS
    ExplainedUnit units[CHIP_UNITS];
    ExplainedTask tasks[EXPLAIN_TASKS];  // in order of score
    ExplainedPair pairs[EXPLAIN_PAIRS];
    // Window of the network's last pass: [n_seen][RELMAS_FEATURES]
    uint32_t n_seen;
    uint64_t seen[RELMAS_WINDOW];
    float    features[RELMAS_WINDOW * RELMAS_FEATURES];
} ChipExplanation;

typedef struct DecisionQuery {
    uint64_t decision;  // number from 1; 0: the first that chooses between tasks
    TimeNs   from;      // earliest time
} DecisionQuery;

// Simulates the run to its end; fails if it has no such decision.
MUST_USE Err chip_explanation_find(const ChipRun *run, DecisionQuery query, Arena *a,
                                   ChipExplanation *out);

const ExplainedPair *chip_explanation_pair(const ChipExplanation *x, uint32_t task, uint32_t unit);
