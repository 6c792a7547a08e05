// PlanBuilder: what every task is to have once a plan is carried out; and its steps, in an order in
// which nothing is ever taken that is not free yet.
//
// It begins with everybody as they are. Tasks are stopped, placed and levelled on it as often as
// one likes; what is written in the end is the difference.
#pragma once

#include "placement/placement.h"

enum { PLAN_BUILDER_SHAPES = 16 };

typedef struct PlanTask {
    ClusterSlice *slices;  // [n] that it is to have; none: it is to wait
    uint64_t      plan;    // the builder that touched it last
    uint32_t      n, had;
    bool          ousted;
} PlanTask;

typedef struct PlanBuilder {
    const ClusterView *view;
    FreeResources      free;     // what is free if it were carried out
    PlanTask          *tasks;    // [n_slots]
    uint32_t          *touched;  // [n_touched] slots, in the order in which they were
    ClusterSlice      *slices;   // those of running tasks
    size_t             room;
    uint64_t           plan;
    uint32_t           n_touched, n_slices;
    ClusterJob hopeless[PLAN_BUILDER_SHAPES];  // found no place, and nothing was given back since
    uint32_t   n_hopeless;
} PlanBuilder;

void plan_builder_carve(PlanBuilder *d, const ClusterSetup *s, Carve *from);
void plan_builder_init(PlanBuilder *d, const ClusterSetup *s);
void plan_builder_begin(PlanBuilder *d, const ClusterView *v);

// What a task is to have, by now; NULL: it is to wait. Valid until the builder is changed.
const ClusterSlice *plan_builder_slices(const PlanBuilder *d, uint32_t slot, uint32_t *n);

void plan_builder_stop(PlanBuilder *d, uint32_t slot);  // one that has a place
bool plan_builder_place(PlanBuilder *d,
                        uint32_t slot);  // with its default demand, where placement_place finds it
bool plan_builder_place_as(PlanBuilder *d, uint32_t slot, const ClusterJob *j);  // with that one's
bool plan_builder_put(PlanBuilder *d, uint32_t slot, const ClusterSlice *s,
                      uint32_t n);  // there, with masks

// Other amounts for one that has a place: of each GPU, and for each GPU of cores and memory (of a
// task without GPUs: in all). false: they are not free, nothing is changed.
bool plan_builder_resize(PlanBuilder *d, uint32_t slot, uint32_t gpu_milli, double cores_milli,
                         double mib);

// Places a task where others, as few as their order allows, have to stop for it: the first of
// `victims` first. Those that already stopped are passed over. false: it would not help, as before.
bool plan_builder_preempt(PlanBuilder *d, uint32_t slot, const ClusterJob *j,
                          const uint32_t *victims, uint32_t n);

// GPUs on which jobs that ask for parts of one are not placed in this builder, whatever is free
// there.
void plan_builder_close(PlanBuilder *d, const ClusterSlice *s, uint32_t n, bool closed);

bool plan_builder_moves(const PlanBuilder *d,
                        uint32_t           slot);  // it is to be where it is not, or no more

uint32_t plan_builder_write(PlanBuilder *d, ClusterAction *out);  // at most two actions a task

// A whole number of what is counted for each GPU, without what rounding took from it.
static inline uint32_t plan_builder_amount(double x) { return (uint32_t)(x + 1e-6); }
