// Hope: whether a task can still be in time, and what becomes of it when it cannot.
#pragma once

#include "base/settings.h"
#include "contract/chip.h"

#define HOPE_SETTINGS(X, lost, factor)                                                             \
    X(hopeless, int, lost, 0, 2, "requests that must be late: 0 as others, 1 last, 2 dropped")     \
    X(ease, double, factor, 0.0, 100.0, "what is left is taken to need this many times its least")

typedef enum HopeLost {
    HOPE_KEEP,  // as if nothing were
    HOPE_LAST,  // after all that may still be in time
    HOPE_DROP,
} HopeLost;

// All that is left, every layer on its fastest kind.
static inline double hope_rest(const ChipView *v, const ChipTask *t) {
    return (double)v->setup->tenants[t->request.tenant].model->rest_ns[t->layer];
}

// `ease`, but never so much that a request would be without hope when it comes.
static inline double hope_factor(const ChipView *v, const ChipTask *t, double ease) {
    const double fresh = 0.9;
    double       had = (double)(t->request.deadline - t->request.arrival);
    double most = fresh * had / (double)v->setup->tenants[t->request.tenant].model->rest_ns[0];
    return ease < most ? ease : most > 1.0 ? most : 1.0;
}

// What could be lost without missing the deadline if the rest took `ease` times its least.
static inline double hope_slack(const ChipView *v, const ChipTask *t, double ease) {
    return (double)(t->request.deadline - v->now) - hope_factor(v, t, ease) * hope_rest(v, t);
}

static inline bool hope_lost(const ChipView *v, const ChipTask *t, int hopeless, double ease) {
    return hopeless != HOPE_KEEP && hope_slack(v, t, ease) < 0;
}
