// RelmasLook: what the network sees: the most urgent tasks, each as a row of numbers in -1 .. 1.
#pragma once

#include "policy/chip/relmas_rule.h"

enum {
    RELMAS_WINDOW = 64,         // tasks, at most
    RELMAS_TASK_FEATURES = 18,  // of a row, and so many more for every kind:
    RELMAS_KIND_FEATURES = 6,
    RELMAS_FEATURES = RELMAS_TASK_FEATURES + CHIP_KINDS * RELMAS_KIND_FEATURES,
};

typedef struct RelmasLook {
    uint32_t   n, n_features;
    uint32_t   task[RELMAS_WINDOW];  // index into the view's
    RelmasCase at[RELMAS_WINDOW];
    float      x[RELMAS_WINDOW * RELMAS_FEATURES];  // [n][n_features]
} RelmasLook;

static inline uint32_t relmas_look_features(uint32_t n_kinds) {
    return RELMAS_TASK_FEATURES + n_kinds * RELMAS_KIND_FEATURES;
}

// Tasks by slack, the least first; those without hope are left out.
void        relmas_look(const RelmasRule *r, const ChipView *v, RelmasLook *out);
const char *relmas_look_name(uint32_t feature, uint32_t n_kinds);  // without that of the kind
