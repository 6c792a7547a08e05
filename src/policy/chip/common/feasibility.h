// Hope: whether a task can still be in time, and what becomes of it when it cannot.
#pragma once

#include "base/settings.h"
#include "contract/chip.h"

#define FEASIBILITY_SETTINGS(X, lost, factor)                                                      \
    X(late_action, int, lost, 0, 2, "requests that must be late: 0 as others, 1 last, 2 dropped")  \
    X(safety_factor, double, factor, 0.0, 100.0,                                                   \
      "what is left is taken to need this many times its least")

typedef enum LateAction {
    LATE_KEEP,  // as if nothing were
    LATE_LAST,  // after all that may still be in time
    LATE_DROP,
} LateAction;

// All that is left, every layer on its fastest kind.
static inline double feasibility_rest_ns(const ChipView *v, const ChipTask *t) {
    return (double)v->setup->tenants[t->request.tenant].model->rest_ns[t->layer];
}

// `safety_factor`, but never so much that a request would be without hope when it comes.
static inline double feasibility_factor(const ChipView *v, const ChipTask *t,
                                        double safety_factor) {
    const double fresh = 0.9;
    double       had = (double)(t->request.deadline - t->request.arrival);
    double most = fresh * had / (double)v->setup->tenants[t->request.tenant].model->rest_ns[0];
    return safety_factor < most ? safety_factor : most > 1.0 ? most : 1.0;
}

// What could be lost without missing the deadline if the rest took `safety_factor` times its least.
static inline double feasibility_slack_ns(const ChipView *v, const ChipTask *t,
                                          double safety_factor) {
    return (double)(t->request.deadline - v->now) -
           feasibility_factor(v, t, safety_factor) * feasibility_rest_ns(v, t);
}

static inline bool infeasible(const ChipView *v, const ChipTask *t, int late_action,
                              double safety_factor) {
    return late_action != LATE_KEEP && feasibility_slack_ns(v, t, safety_factor) < 0;
}
