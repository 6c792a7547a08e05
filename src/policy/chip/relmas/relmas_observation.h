// RelmasObservation: the network's input: the most urgent tasks, each a row of features in -1 .. 1.
//
// A row describes the task and three kinds of units for its layer: the fastest, the cheapest, and
// the cheapest with a free unit. So the network does not depend on the kinds of a package.
#pragma once

#include "policy/chip/relmas/relmas_score.h"

enum {
    RELMAS_WINDOW = 64,         // tasks, at most
    RELMAS_TASK_FEATURES = 18,  // of a row; followed by those of three kinds
    RELMAS_UNIT_FEATURES = 5,
    RELMAS_FEATURES = RELMAS_TASK_FEATURES + 3 * RELMAS_UNIT_FEATURES,
};

typedef struct RelmasObservation {
    uint32_t        n;
    uint32_t        task[RELMAS_WINDOW];  // index into the view's tasks
    RelmasTaskState at[RELMAS_WINDOW];
    float           x[RELMAS_WINDOW * RELMAS_FEATURES];  // [n][RELMAS_FEATURES]
} RelmasObservation;

// Feasible tasks by ascending slack.
void        relmas_observe(const RelmasScorer *r, const ChipView *v, RelmasObservation *out);
const char *relmas_feature_name(uint32_t feature);
