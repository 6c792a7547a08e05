// RelmasLook: what the network sees: the most urgent tasks, each as a row of numbers in -1 .. 1.
//
// A row tells of the task, and of three kinds of units for its layer: the fastest, the cheapest,
// and the cheapest that has a free unit. So packages of any kinds look alike.
#pragma once

#include "policy/chip/relmas_rule.h"

enum {
    RELMAS_WINDOW = 64,         // tasks, at most
    RELMAS_TASK_FEATURES = 18,  // of a row; then those of three units
    RELMAS_UNIT_FEATURES = 5,
    RELMAS_FEATURES = RELMAS_TASK_FEATURES + 3 * RELMAS_UNIT_FEATURES,
};

typedef struct RelmasLook {
    uint32_t   n;
    uint32_t   task[RELMAS_WINDOW];  // index into the view's
    RelmasCase at[RELMAS_WINDOW];
    float      x[RELMAS_WINDOW * RELMAS_FEATURES];  // [n][RELMAS_FEATURES]
} RelmasLook;

// Tasks by slack, the least first; those without hope are left out.
void        relmas_look(const RelmasRule *r, const ChipView *v, RelmasLook *out);
const char *relmas_look_name(uint32_t feature);
