// LayerPlan: on which kind of unit, and in which order, the next layers of tasks are to run, as it
// was last version out and adopted.
//
// A version is written while the last one still committed_version, and takes its place when it is
// adopted. A task that has run ahead of it keeps its rank; who came later follows all that it
// names.
#pragma once

#include "policy/chip/common/feasibility.h"
#include "policy/chip/common/dispatch.h"

enum { LAYER_PLAN_DEPTH = 16 };  // layers of a task, at most

typedef struct PlannedLayer {
    float   rank;  // least first
    uint8_t kind;
} PlannedLayer;

typedef struct PlannedTask {
    uint64_t     request, version;  // whose, and the number of the version; 0: none
    uint32_t     first, n;          // layers
    PlannedLayer at[LAYER_PLAN_DEPTH];
} PlannedTask;

typedef struct LayerPlan {
    PlannedTask *committed, *draft;  // [slot]
    uint64_t     committed_version, draft_version;
    TaskQueue    order;
} LayerPlan;

void layer_plan_carve(LayerPlan *a, uint32_t n_slots, Carve *from);

void layer_plan_begin(LayerPlan *a);  // a new version, in which nothing stands
// The task's layers have to be named one after the other; what is too many is left out.
void layer_plan_put(LayerPlan *a, const ChipTask *t, uint32_t layer, PlannedLayer x);
void layer_plan_commit(LayerPlan *a);

// What was last adopted about a layer of a task; NULL: nothing.
const PlannedLayer *layer_plan_find(const LayerPlan *a, const ChipTask *t, uint32_t layer);

typedef struct LayerPlanParams {
    double patience;     // see unit_timeline_first_to_end
    int    late_action;  // a LateAction
    double safety_factor;
} LayerPlanParams;

// Starts tasks by rank on their kinds, then others by arrival where they end first. Who finds its
// kind busy takes a free unit instead when waiting would not end before patience x that.
uint32_t layer_plan_dispatch(LayerPlan *a, UnitTimeline *f, const LayerPlanParams *rules,
                             ChipAction *out, uint32_t max);
