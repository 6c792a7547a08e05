// Hope: whether a task can still be in time, and what becomes of it when it cannot.
#pragma once

#include "contract/chip.h"

typedef enum HopeLost {
    HOPE_KEEP,  // as if nothing were
    HOPE_LAST,  // after all that may still be in time
    HOPE_DROP,
} HopeLost;

// All that is left, every layer on its fastest kind.
static inline double hope_rest(const ChipView *v, const ChipTask *t) {
    return (double)v->setup->tenants[t->request.tenant].model->rest_ns[t->layer];
}

// What could be lost without missing the deadline if the rest took `ease` times its least.
static inline double hope_slack(const ChipView *v, const ChipTask *t, double ease) {
    return (double)(t->request.deadline - v->now) - ease * hope_rest(v, t);
}
