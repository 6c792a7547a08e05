// RelmasObservation: what the network sees: the most urgent tasks, each as a row of numbers in -1
// .. 1.
//
// A row tells of the task, and of three kinds of units for its layer: the fastest, the cheapest,
// and the cheapest that has a free unit. So packages of any kinds look alike.
#pragma once

#include "policy/chip/relmas/relmas_score.h"

enum {
    RELMAS_WINDOW = 64,         // tasks, at most
    RELMAS_TASK_FEATURES = 18,  // of a row; then those of three units
    RELMAS_UNIT_FEATURES = 5,
    RELMAS_FEATURES = RELMAS_TASK_FEATURES + 3 * RELMAS_UNIT_FEATURES,
};

typedef struct RelmasObservation {
    uint32_t        n;
    uint32_t        task[RELMAS_WINDOW];  // index into the view's
    RelmasTaskState at[RELMAS_WINDOW];
    float           x[RELMAS_WINDOW * RELMAS_FEATURES];  // [n][RELMAS_FEATURES]
} RelmasObservation;

// Tasks by slack, the least first; those without hope are left out.
void        relmas_observe(const RelmasScorer *r, const ChipView *v, RelmasObservation *out);
const char *relmas_feature_name(uint32_t feature);
