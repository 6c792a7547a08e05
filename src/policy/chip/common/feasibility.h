// Feasibility: whether a task can still meet its deadline, and what happens to it if it cannot.
//
// The time that a task still needs is estimated as its best case (every layer on its fastest kind
// of unit, no contention) times a safety factor.
#pragma once

#include "base/settings.h"
#include "contract/chip.h"

#define FEASIBILITY_SETTINGS(X, action, factor)                                                    \
    X(late_action, int, action, 0, 2,                                                              \
      "requests that cannot be in time: 0 as others, 1 after all others, 2 dropped")               \
    X(safety_factor, double, factor, 0.0, 100.0, "time a request still needs, over its best case")

typedef enum LateAction {
    LATE_KEEP,  // as feasible tasks
    LATE_LAST,  // after all feasible tasks
    LATE_DROP,
} LateAction;

// Best case of all remaining layers.
static inline double feasibility_rest_ns(const ChipView *v, const ChipTask *t) {
    return (double)v->setup->tenants[t->request.tenant].model->rest_ns[t->layer];
}

// The safety factor, limited so that no request is infeasible on arrival.
static inline double feasibility_factor(const ChipView *v, const ChipTask *t,
                                        double safety_factor) {
    const double fresh = 0.9;
    double       allowed = (double)(t->request.deadline - t->request.arrival);
    double most = fresh * allowed / (double)v->setup->tenants[t->request.tenant].model->rest_ns[0];
    return safety_factor < most ? safety_factor : most > 1.0 ? most : 1.0;
}

// Time to the deadline less the time still needed; below 0: infeasible.
static inline double feasibility_slack_ns(const ChipView *v, const ChipTask *t,
                                          double safety_factor) {
    return (double)(t->request.deadline - v->now) -
           feasibility_factor(v, t, safety_factor) * feasibility_rest_ns(v, t);
}

typedef struct Feasibility {
    int    late_action;  // a LateAction
    double safety_factor;
} Feasibility;

// False for all tasks if the action is LATE_KEEP.
static inline bool infeasible(const Feasibility *f, const ChipView *v, const ChipTask *t) {
    return f->late_action != LATE_KEEP && feasibility_slack_ns(v, t, f->safety_factor) < 0;
}
