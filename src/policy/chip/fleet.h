// Fleet: the units while a plan is made: when each is free, with what the plan has put on it.
//
// Who finds its unit busy may wait for it. Its claim is kept, so that whoever comes after it in the
// plan sees the unit as taken for so much longer, and goes elsewhere or waits behind it.
#pragma once

#include "base/settings.h"
#include "contract/chip.h"

#define FLEET_SETTINGS(X, waits)                                                                   \
    X(patience, double, waits, 0.0, 100.0,                                                         \
      "waits for a busy unit that ends within this many times what a free one takes; 0: never")

typedef struct Fleet {
    const ChipView *view;
    float           at[CHIP_UNITS];     // from now until it is free; 0: now
    uint32_t        next[CHIP_KINDS];   // the first unit to be free; CHIP_NONE: there is no unit
    uint32_t        first[CHIP_KINDS];  // unit of the kind
    uint32_t        n_free;             // that nobody has claimed
    float           demand, bytes_ns;   // of and from the memory; see fleet_heed
} Fleet;

typedef struct FleetPick {
    uint32_t unit;      // CHIP_NONE: no unit can compute the layer
    float    wait, ns;  // until it starts, and takes then
} FleetPick;

void fleet_open(Fleet *f, const ChipView *v);  // as if the memory had enough for all
void fleet_heed(Fleet *f);  // from now on layers are as slow as what runs leaves them bandwidth

// The next unit of a kind, if it can compute the task's layer.
FleetPick fleet_of_kind(const Fleet *f, const ChipTask *t, uint32_t kind);
// The unit that is free first; of several, the one that computes the layer in the least time.
FleetPick fleet_first(const Fleet *f, const ChipTask *t);
// The first of the fastest kind.
FleetPick fleet_fastest(const Fleet *f, const ChipTask *t);
// The one that ends first. A busy one has to end before `patience` times what a free one takes: 0
// never waits, 1 waits whenever that ends earlier.
FleetPick fleet_soonest(const Fleet *f, const ChipTask *t, float patience);

void fleet_claim(Fleet *f, const ChipTask *t, FleetPick p);  // what was just picked for t
void fleet_until(Fleet *f, uint32_t unit, float at);         // taken so long

static inline const ChipModel *fleet_model(const Fleet *f, const ChipTask *t) {
    return f->view->setup->tenants[t->request.tenant].model;
}
