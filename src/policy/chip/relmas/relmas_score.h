// RelmasScorer: the score of a task on a kind of unit, as a sum of terms of the heuristic and of
// the network.
#pragma once

#include "policy/chip/relmas/relmas_price.h"

// Defaults were chosen on traces of seeds 1 to 99.
#define RELMAS_SCORE_SETTINGS(X)                                                                   \
    X(size, double, 3.0, 0.0, 16.0, "weight of a request's remaining work: less goes first")       \
    X(size_units, double, 1.0, 0.0, 16.0, "the same where units, not bandwidth, are scarce")       \
    X(slack, double, 0.2, 0.0, 100.0, "weight of slack, in units of a mean request's work")        \
    X(fair, double, 8.0, 0.0, 100.0, "weight of a tenant's deficit to its target hit rate")        \
    X(fit, double, 0.5, 0.0, 100.0, "weight of the price on a unit over the cheapest unit's")      \
    X(time, double, 1.0, 0.0, 100.0, "weight of the share of a layer's slack that a unit uses")    \
    X(patience, double, 0.3, 0.0, 100.0, "how much higher a busy unit must score to wait for it")  \
    X(speed, double, 0.2, 0.0, 1.0, "least share of its demand at which a layer is started")       \
    X(stay, double, 2.0, 0.0, 100.0, "added to the bandwidth priority of running layers")          \
    X(margin, double, 0.0, -1.0, 4.0,                                                              \
      "least slack of a feasible request, over its remaining time")                                \
    X(cap, bool, true, 0, 1, "give bandwidth by score; else all layers slow down alike")           \
    X(drop, bool, true, 0, 1, "drop infeasible requests; else compute them last")

#define RELMAS_SETTINGS(X)                                                                         \
    RELMAS_SCORE_SETTINGS(X)                                                                       \
    X(gain, double, 4.0, 0.0, 100.0, "weight of the network's output")                             \
    X(weights, string, "", 0, 4095, "a weights file, or none (default: the embedded weights)")     \
    X(hidden, int, 0, 0, 1024, "charge for a network of this size (0: its own)")

typedef struct RelmasSettings {
    RELMAS_SETTINGS(SETTING_FIELD)
} RelmasSettings;

typedef enum RelmasTerm {
    RELMAS_SIZE,
    RELMAS_SLACK,
    RELMAS_FAIR,
    RELMAS_LEARNED,
    RELMAS_FIT,
    RELMAS_TIME,
    RELMAS_WAIT,
    RELMAS_LEARNED_UNIT,
    RELMAS_TERMS,
    RELMAS_TASK_TERMS = RELMAS_FIT,  // the terms before are the same on every unit
} RelmasTerm;

const char *relmas_term_name(RelmasTerm p);

// The network's output for one task, each in -1 .. 1: how much sooner it starts, and how much more
// price, time and bandwidth count in the choice of its unit. Zeros if it has not seen the task.
typedef struct RelmasActorOutput {
    float priority, fit, time, bytes;
} RelmasActorOutput;

enum { RELMAS_OUTPUTS = sizeof(RelmasActorOutput) / sizeof(float) };

typedef struct RelmasScorer {
    const ChipSetup   *setup;
    const RelmasTable *table;
    RelmasSettings     cfg;
} RelmasScorer;

typedef struct RelmasTaskState {
    const RelmasModel *model;
    uint32_t           layer;                    // next layer; the last one if that runs
    float              rest_ns, slack_ns, work;  // of the remaining layers
    bool               infeasible;               // the deadline cannot be met
} RelmasTaskState;

// Bandwidth can be taken from a layer at any time, a unit only when its layer ends: preferring
// short requests pays more where bandwidth is scarce.
static inline float relmas_size_weight(const RelmasSettings *w, const RelmasScorer *r) {
    float memory = r->table->share[r->setup->n_kinds];
    return (float)w->size * memory + (float)w->size_units * (1.0f - memory);
}

RelmasTaskState relmas_task_state(const RelmasScorer *r, const ChipView *v, const ChipTask *t);

// Fills in the terms that do not depend on the unit; returns their sum.
float relmas_score_task(const RelmasScorer *r, const ChipView *v, const ChipTask *t,
                        const RelmasTaskState *c, const RelmasActorOutput *output,
                        float terms[RELMAS_TERMS]);
// Fills in the terms that do; returns their sum, or -INFINITY if the kind cannot compute the layer
// or not in time. wait_ns: until a unit of the kind is free.
float relmas_score_unit(const RelmasScorer *r, const RelmasTaskState *c, uint32_t kind,
                        float wait_ns, const RelmasActorOutput *output, float terms[RELMAS_TERMS]);
