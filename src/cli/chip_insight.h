// ChipInsight: one decision of relmas: what it saw, what it weighed, what it chose.
#pragma once

#include "chip/run.h"
#include "policy/chip/relmas.h"

enum { INSIGHT_TASKS = 64, INSIGHT_PAIRS = INSIGHT_TASKS * CHIP_KINDS };

typedef struct InsightTask {
    ChipRequest   request;
    uint32_t      task, layer, unit;  // unit: that it got or waits for
    double        left_ms, rest_ms, slack_ms;
    float         worth, parts[RELMAS_PARTS];
    RelmasSays    says;
    bool          seen, hopeless;  // seen: by the network
    RelmasVerdict verdict;
} InsightTask;

typedef struct InsightPair {
    uint32_t task, unit;  // task: index into tasks
    float    wait_ns, fit, parts[RELMAS_PARTS];
} InsightPair;

typedef struct InsightUnit {
    uint64_t request;
    TimeNs   free_in;
    float    bytes_ns, cap;
    bool     busy;
} InsightUnit;

typedef struct ChipInsight {
    uint64_t    decision, waiting;  // by number; tasks that wait
    TimeNs      now;
    float       demand;
    uint32_t    n_free, n_tasks, n_pairs, n_units, more;  // more: weighed, but not kept here
    InsightUnit units[CHIP_UNITS];
    InsightTask tasks[INSIGHT_TASKS];  // in the order in which they took turns
    InsightPair pairs[INSIGHT_PAIRS];
    // Of the window that the network read last: [n_seen][RELMAS_FEATURES]
    uint32_t n_seen;
    uint64_t seen[RELMAS_WINDOW];
    float    features[RELMAS_WINDOW * RELMAS_FEATURES];
} ChipInsight;

typedef struct InsightWish {
    uint64_t decision;  // by number from 1; 0: the first that chooses between tasks
    TimeNs   from;      // not before
} InsightWish;

// Runs it to the end; fails when there is no such decision.
MUST_USE Err chip_insight_find(const ChipRun *run, InsightWish wish, Arena *a, ChipInsight *out);

const InsightPair *chip_insight_pair(const ChipInsight *x, uint32_t task, uint32_t unit);
