// PlanBuilder: the wanted state of all tasks, written out as actions in an executable order.
//
// It begins with every task as it is. Tasks are stopped, placed and resized in it any number of
// times; plan_builder_write emits the difference, first what frees resources, then what takes them.
#pragma once

#include "placement/placement.h"

enum { PLAN_BUILDER_SHAPES = 16 };

typedef struct PlanTask {
    ClusterSlice *slices;  // [n] wanted; n = 0: the task waits
    uint64_t      plan;    // number of the plan that touched it last
    uint32_t      n, had;  // had: slices before plan_builder_stop
    bool          victim;  // stopped by a plan_builder_preempt in progress
} PlanTask;

typedef struct PlanBuilder {
    const ClusterView *view;
    FreeResources      free;     // after the plan
    PlanTask          *tasks;    // [n_slots]
    uint32_t          *touched;  // [n_touched] slots, in the order of their first change
    ClusterSlice      *slices;   // [n_slices] copies of running tasks' slices
    size_t             room;     // capacity of slices
    uint64_t           plan;     // number of the current plan
    uint32_t           n_touched, n_slices;
    ClusterJob         misfits[PLAN_BUILDER_SHAPES];  // did not fit since resources were last freed
    uint32_t           n_misfits;
} PlanBuilder;

void plan_builder_carve(PlanBuilder *d, const ClusterSetup *s, Carve *from);
void plan_builder_begin(PlanBuilder *d, const ClusterView *v);

// Wanted slices of a task so far; NULL: it waits. Valid until the next change.
const ClusterSlice *plan_builder_slices(const PlanBuilder *d, uint32_t slot, uint32_t *n);

void plan_builder_stop(PlanBuilder *d, uint32_t slot);            // a task that has slices
bool plan_builder_may_stop(const PlanBuilder *d, uint32_t slot);  // see cluster_may_preempt
void plan_builder_restore(PlanBuilder *d,
                          uint32_t     slot);                // undoes the plan_builder_stop just before
bool plan_builder_place(PlanBuilder *d, uint32_t slot);  // by placement_place, default demand
bool plan_builder_place_as(PlanBuilder *d, uint32_t slot, const ClusterJob *j);  // with j's demand
// On given slices with masks; false: not all of it is free.
bool plan_builder_put(PlanBuilder *d, uint32_t slot, const ClusterSlice *s, uint32_t n);

// Other amounts for a task that has slices: thousandths of each GPU, cores and memory per GPU (in
// all for a task without GPUs). false: they are not free, nothing changes.
bool plan_builder_resize(PlanBuilder *d, uint32_t slot, uint32_t gpu_milli, double cores_milli,
                         double mib);

// Places a task by stopping as few of `victims` as their order allows, the first ones first.
// Victims that already stopped or may not stop are skipped. false: it does not fit even then,
// nothing changes.
bool plan_builder_preempt(PlanBuilder *d, uint32_t slot, const ClusterJob *j,
                          const uint32_t *victims, uint32_t n);

// Closes GPUs to jobs with a GPU fraction for this plan, or opens them.
void plan_builder_close(PlanBuilder *d, const ClusterSlice *s, uint32_t n, bool closed);

// The task's servers or GPUs change in this plan, or it stops.
bool plan_builder_moves(const PlanBuilder *d, uint32_t slot);

uint32_t plan_builder_write(PlanBuilder *d, ClusterAction *out);  // at most two actions per task

// Rounds down, with tolerance for the rounding error of amounts per GPU.
static inline uint32_t plan_builder_amount(double x) { return (uint32_t)(x + 1e-6); }
