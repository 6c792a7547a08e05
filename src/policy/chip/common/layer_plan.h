// LayerPlan: for the next layers of tasks the kind of unit and the rank by which they start.
//
// plan() writes a draft while the committed plan is followed; layer_plan_commit makes the draft the
// plan. A task that has run beyond its planned layers keeps the rank of its last one; tasks that
// are not in the plan follow by arrival.
#pragma once

#include "policy/chip/common/dispatch.h"

enum { LAYER_PLAN_DEPTH = 16 };  // planned layers of a task, at most

typedef struct PlannedLayer {
    float   rank;  // least first
    uint8_t kind;
} PlannedLayer;

typedef struct PlannedTask {
    uint64_t     request, version;  // version of the plan that it belongs to; 0: none
    uint32_t     first, n;          // layers
    PlannedLayer at[LAYER_PLAN_DEPTH];
} PlannedTask;

typedef struct LayerPlan {
    PlannedTask *committed, *draft;  // [slot]
    uint64_t     committed_version, draft_version;
    TaskQueue    queue;
} LayerPlan;

void layer_plan_carve(LayerPlan *p, uint32_t n_slots, Carve *from);

void layer_plan_begin(LayerPlan *p);  // an empty draft
// A task's layers are put in ascending order; those beyond LAYER_PLAN_DEPTH are left out.
void layer_plan_put(LayerPlan *p, const ChipTask *t, uint32_t layer, PlannedLayer x);
void layer_plan_commit(LayerPlan *p);

// The committed plan of a layer; NULL: none.
const PlannedLayer *layer_plan_find(const LayerPlan *p, const ChipTask *t, uint32_t layer);

typedef struct LayerPlanParams {
    double      patience;  // see unit_timeline_first_to_end
    Feasibility feasibility;
} LayerPlanParams;

// Starts tasks by rank on their planned kinds, then the others by arrival where they end first. If
// the planned kind is busy, a free unit is taken unless waiting ends within patience times its
// time.
uint32_t layer_plan_dispatch(LayerPlan *p, UnitTimeline *t, const LayerPlanParams *cfg,
                             ChipAction *out, uint32_t max);
