// UnitTimeline: the units while a plan is made: when each is free, with what the plan has put on
// it.
//
// Who finds its unit busy may wait for it. Its claim is kept, so that whoever comes after it in the
// plan sees the unit as taken for so much longer, and goes elsewhere or waits behind it.
#pragma once

#include "base/settings.h"
#include "contract/chip.h"

#define PATIENCE_SETTING(X, waits)                                                                 \
    X(patience, double, waits, 0.0, 100.0,                                                         \
      "waits for a busy unit that ends within this many times what a free one takes; 0: never")

typedef struct UnitTimeline {
    const ChipView *view;
    float           at[CHIP_UNITS];     // from now until it is free; 0: now
    uint32_t        next[CHIP_KINDS];   // the first unit to be free; CHIP_NONE: there is no unit
    uint32_t        first[CHIP_KINDS];  // unit of the kind
    uint32_t        n_free;             // that nobody has claimed
    float           demand, bytes_ns;   // of and from the memory; see unit_timeline_share_bandwidth
} UnitTimeline;

typedef struct UnitPick {
    uint32_t unit;      // CHIP_NONE: no unit can compute the layer
    float    wait, ns;  // until it starts, and takes then
} UnitPick;

void unit_timeline_open(UnitTimeline *f, const ChipView *v);  // as if the memory had enough for all
void unit_timeline_share_bandwidth(
    UnitTimeline *f);  // from now on layers are as slow as what runs leaves them bandwidth

// The next unit of a kind, if it can compute the task's layer.
UnitPick unit_timeline_of_kind(const UnitTimeline *f, const ChipTask *t, uint32_t kind);
// The unit that is free first; of several, the one that computes the layer in the least time.
UnitPick unit_timeline_first_free(const UnitTimeline *f, const ChipTask *t);
// The first of the fastest kind.
UnitPick unit_timeline_fastest(const UnitTimeline *f, const ChipTask *t);
// The one that ends first. A busy one has to end before `patience` times what a free one takes: 0
// never waits, 1 waits whenever that ends earlier.
UnitPick unit_timeline_first_to_end(const UnitTimeline *f, const ChipTask *t, float patience);

void unit_timeline_reserve(UnitTimeline *f, const ChipTask *t,
                           UnitPick p);                               // what was just picked for t
void unit_timeline_occupy(UnitTimeline *f, uint32_t unit, float at);  // taken so long

static inline const ChipModel *unit_timeline_model(const UnitTimeline *f, const ChipTask *t) {
    return f->view->setup->tenants[t->request.tenant].model;
}
