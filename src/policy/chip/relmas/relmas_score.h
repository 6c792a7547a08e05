// RelmasScorer: what a pair of a task and a kind of unit is worth, part by part: by rule, and by
// what the network says.
#pragma once

#include "policy/chip/relmas/relmas_price.h"

// The defaults were chosen on traces of the seeds 1 to 99.
#define RELMAS_SCORE_SETTINGS(X)                                                                   \
    X(size, double, 3.0, 0.0, 16.0, "weight of a request's remaining work: little goes first")     \
    X(size_units, double, 1.0, 0.0, 16.0, "the same where units are scarce, not bandwidth")        \
    X(slack, double, 0.2, 0.0, 100.0, "weight of slack, in works of a usual request")              \
    X(fair, double, 8.0, 0.0, 100.0, "weight of what a tenant lacks to its target")                \
    X(fit, double, 0.5, 0.0, 100.0, "weight of a unit's price over the cheapest unit's")           \
    X(time, double, 1.0, 0.0, 100.0, "weight of a layer's part of the slack that a unit takes")    \
    X(patience, double, 0.3, 0.0, 100.0, "how much better a busy unit must be to wait for it")     \
    X(speed, double, 0.2, 0.0, 1.0, "least part of its bandwidth with which a layer is started")   \
    X(stay, double, 2.0, 0.0, 100.0, "how much more a layer counts for bandwidth once it runs")    \
    X(margin, double, 0.0, -1.0, 4.0, "slack below this part of the remaining time is infeasible") \
    X(cap, bool, true, 0, 1, "bandwidth goes to the layers that are worth most, not to all alike") \
    X(drop, bool, false, 0, 1, "infeasible requests are dropped, not computed last")

#define RELMAS_SETTINGS(X)                                                                         \
    RELMAS_SCORE_SETTINGS(X)                                                                       \
    X(gain, double, 4.0, 0.0, 100.0, "weight of what the network says")                            \
    X(weights, string, "", 0, 4095, "a file of weights, or none (default: what came along)")       \
    X(hidden, int, 0, 0, 1024, "charge a network of this size (0: of its own)")

typedef struct RelmasSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    RELMAS_SETTINGS(X)
#undef X
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
    RELMAS_TASK_TERMS = RELMAS_FIT,  // those before are the same on every unit
} RelmasTerm;

const char *relmas_term_name(RelmasTerm p);

// What the network says of one task, in -1 .. 1: whether it goes first, and what counts more when a
// unit is chosen for it. Zeros when it has not seen the task.
typedef struct RelmasActorOutput {
    float priority, fit, time, bytes;
} RelmasActorOutput;

enum { RELMAS_OUTPUTS = sizeof(RelmasActorOutput) / sizeof(float) };

typedef struct RelmasScorer {
    const ChipSetup   *setup;
    const RelmasTable *table;
    RelmasSettings     cfg;
} RelmasScorer;

typedef struct RelmasTaskState {  // how a task stands
    const RelmasModel *model;
    uint32_t           layer;                    // that comes next; the last one when that runs
    float              rest_ns, slack_ns, work;  // of its remaining layers
    bool               infeasible;               // its deadline cannot be kept
} RelmasTaskState;

// Bandwidth can be taken from a layer at any time, a unit only when the layer ends: to prefer
// little work pays more where bandwidth is what is scarce.
static inline float relmas_size_weight(const RelmasSettings *w, const RelmasScorer *r) {
    float memory = r->table->share[r->setup->n_kinds];
    return (float)w->size * memory + (float)w->size_units * (1.0f - memory);
}

RelmasTaskState relmas_task_state(const RelmasScorer *r, const ChipView *v, const ChipTask *t);

// Parts that do not depend on the kind, and their sum.
float relmas_score_task(const RelmasScorer *r, const ChipView *v, const ChipTask *t,
                        const RelmasTaskState *c, const RelmasActorOutput *says,
                        float parts[RELMAS_TERMS]);
// Parts that do, and their sum; -INFINITY: the kind cannot compute it, or not in time. wait_ns:
// until a unit of the kind is free.
float relmas_score_unit(const RelmasScorer *r, const RelmasTaskState *c, uint32_t kind,
                        float wait_ns, const RelmasActorOutput *says, float parts[RELMAS_TERMS]);
