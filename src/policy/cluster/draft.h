// Draft: what every task is to have once a plan is carried out; and its steps, in an order in which
// nothing is ever taken that is not free yet.
//
// It begins with everybody as they are. Tasks are stopped, placed and levelled on it as often as
// one likes; what is written in the end is the difference.
#pragma once

#include "policy/cluster/floor.h"

enum { DRAFT_SHAPES = 16 };

typedef struct DraftTask {
    ClusterSlice *slices;  // [n] that it is to have; none: it is to wait
    uint64_t      plan;    // the draft that touched it last
    uint32_t      n, had;
    bool          ousted;
} DraftTask;

typedef struct Draft {
    const ClusterView *view;
    Floor              floor;    // what is free if it were carried out
    DraftTask         *tasks;    // [n_slots]
    uint32_t          *touched;  // [n_touched] slots, in the order in which they were
    ClusterSlice      *slices;   // those of running tasks
    size_t             room;
    uint64_t           plan;
    uint32_t           n_touched, n_slices;
    ClusterJob         hopeless[DRAFT_SHAPES];  // found no place, and nothing was given back since
    uint32_t           n_hopeless;
} Draft;

void draft_carve(Draft *d, const ClusterSetup *s, Carve *from);
void draft_init(Draft *d, const ClusterSetup *s);
void draft_open(Draft *d, const ClusterView *v);

// What a task is to have, by now; NULL: it is to wait. Valid until the draft is changed.
const ClusterSlice *draft_has(const Draft *d, uint32_t slot, uint32_t *n);

void draft_stop(Draft *d, uint32_t slot);   // one that has a place
bool draft_place(Draft *d, uint32_t slot);  // with its default demand, where floor_place finds it
bool draft_place_as(Draft *d, uint32_t slot, const ClusterJob *j);           // with that one's
bool draft_put(Draft *d, uint32_t slot, const ClusterSlice *s, uint32_t n);  // there, with masks

// Other amounts for one that has a place: of each GPU, and for each GPU of cores and memory (of a
// task without GPUs: in all). false: they are not free, nothing is changed.
bool draft_level(Draft *d, uint32_t slot, uint32_t gpu_milli, double cores_milli, double mib);

// Places a task where others, as few as their order allows, have to stop for it: the first of
// `victims` first. Those that already stopped are passed over. false: it would not help, as before.
bool draft_oust(Draft *d, uint32_t slot, const ClusterJob *j, const uint32_t *victims, uint32_t n);

// GPUs on which jobs that ask for parts of one are not placed in this draft, whatever is free
// there.
void draft_close(Draft *d, const ClusterSlice *s, uint32_t n, bool closed);

bool draft_moves(const Draft *d, uint32_t slot);  // it is to be where it is not, or no more

uint32_t draft_write(Draft *d, ClusterAction *out);  // at most two actions a task

// A whole number of what is counted for each GPU, without what rounding took from it.
static inline uint32_t draft_amount(double x) { return (uint32_t)(x + 1e-6); }
