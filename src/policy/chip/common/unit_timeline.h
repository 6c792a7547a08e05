// UnitTimeline: when each unit of a package becomes free while a policy makes its decision, with
// the layers that the decision has placed so far.
//
// A task may wait for a busy unit. Its reservation makes the unit busy for longer to the tasks
// after it, which choose another unit or queue behind it.
#pragma once

#include "base/settings.h"
#include "contract/chip.h"

#define PATIENCE_SETTING(X, value)                                                                 \
    X(patience, double, value, 0.0, 100.0,                                                         \
      "wait for a busy unit if it ends within this many times a free unit's time; 0: never")

typedef struct UnitTimeline {
    const ChipView *view;
    float           at[CHIP_UNITS];     // nanoseconds until the unit is free; 0: free now
    uint32_t        next[CHIP_KINDS];   // unit of the kind that is free first; CHIP_NONE: no unit
    uint32_t        first[CHIP_KINDS];  // unit of the kind
    uint32_t        n_free;             // units neither busy nor reserved
    float           demand, bytes_ns;   // of running layers; of the memory: INFINITY if ignored
} UnitTimeline;

typedef struct UnitPick {
    uint32_t unit;      // CHIP_NONE: no unit can compute the layer
    float    wait, ns;  // nanoseconds until the layer starts; that it then takes
} UnitPick;

// Ignores the memory's bandwidth until unit_timeline_share_bandwidth, after which layers slow down
// by the demand of those that run.
void unit_timeline_open(UnitTimeline *t, const ChipView *v);
void unit_timeline_share_bandwidth(UnitTimeline *t);

// Picks for a task's next layer: the unit of a kind that is free first;
UnitPick unit_timeline_of_kind(const UnitTimeline *t, const ChipTask *task, uint32_t kind);
// the unit that is free first, of several the fastest;
UnitPick unit_timeline_first_free(const UnitTimeline *t, const ChipTask *task);
// the first free unit of the fastest kind;
UnitPick unit_timeline_fastest(const UnitTimeline *t, const ChipTask *task);
// the unit on which the layer ends first. A busy unit has to end within `patience` times the time
// that a free one takes: 0 never waits, 1 waits whenever that ends earlier.
UnitPick unit_timeline_first_to_end(const UnitTimeline *t, const ChipTask *task, float patience);

void unit_timeline_reserve(UnitTimeline *t, const ChipTask *task, UnitPick p);
void unit_timeline_occupy(UnitTimeline *t, uint32_t unit, float until);  // until: see `at`

static inline const ChipModel *unit_timeline_model(const UnitTimeline *t, const ChipTask *task) {
    return t->view->setup->tenants[task->request.tenant].model;
}
