// Usage: how something goes over time, in a fixed number of spans that widen as time goes on.
#pragma once

#include "cluster/sim/indexed_heap.h"
#include "cluster/sim/cluster_run.h"

typedef struct Usage {
    ClusterUse now;    // since `until`
    TimeNs     until;  // all before it is summed up
    TimeNs     origin, span;
    ClusterUse sums[CLUSTER_SPANS];  // times nanoseconds
    uint32_t   n;
} Usage;

void usage_open(Usage *c, TimeNs origin);
void usage_go(Usage *c, TimeNs to);  // what is now has been so since the last call
// Averages; writes what it has into at[CLUSTER_SPANS].
ClusterUse usage_close(Usage *c, ClusterUse *at, uint32_t *n, TimeNs *span);

// What the files of cluster_sim share: the state of a run.

typedef struct TaskState {  // of a task, what policies are not told
    TimeNs        left;     // of its work at the task's mark, owed with it
    TimeNs        guess;    // of all its work, for those who are told a prediction
    uint32_t      job;      // in the trace
    uint32_t      room;     // of slices
    bool          changed;  // what it has, or who is beside it
    ClusterSlice  one;      // most have one slice
    ClusterSlice *slices;
} TaskState;

typedef struct SlotQueue {  // slots by entry, in an array that is cut at both ends
    uint32_t *at;           // [2 * n_slots]
    uint32_t  first, n, room;
} SlotQueue;

typedef struct ServerAlloc {  // a server
    uint16_t *parts;          // [gpus] free thousandths
    uint32_t *residents;
    uint32_t  room;
} ServerAlloc;

typedef struct ClusterSim {
    const ClusterRun *run;
    Arena            *arena;
    ClusterSetup      setup;
    ClusterResult    *result;
    void             *state;  // the policy's
    TimeNs            now, wake, round;
    uint32_t          next_arrival, n_alive;
    ClusterTask      *tasks;   // [n_slots]
    TaskState        *states;  // [n_slots]
    uint32_t         *free;    // slots that were in use
    uint32_t          n_free, n_fresh;
    uint64_t          entries;
    SlotQueue         waiting, running;
    ServerState      *servers;
    ServerAlloc      *allocs;
    IndexedHeap       ends;
    uint32_t         *changed;  // [n_changed] slots whose rate is to be worked out
    uint32_t          n_changed;
    ClusterAction    *actions;
    uint32_t          max_actions;
    void             *spare[32];  // memory to use again, by power of two
    Rng               guesses;
    Usage             usage;
    uint64_t          used_gpu_milli, used_cores, used_memory;
    uint64_t          idle_rounds;
} ClusterSim;

// Lanes.
void slot_queue_add(SlotQueue *l, uint32_t slot);
void slot_queue_remove(ClusterSim *w, SlotQueue *l, uint32_t slot);

// Tasks.
void cluster_sim_arrive(ClusterSim *w);
void cluster_sim_end(ClusterSim *w, uint32_t slot);
void cluster_sim_start(ClusterSim *w, uint32_t slot, const ClusterSlice *s, uint32_t n);
void cluster_sim_preempt(ClusterSim *w, uint32_t slot);
void cluster_sim_resize(ClusterSim *w, uint32_t slot, const ClusterSlice *s, uint32_t n);
void cluster_sim_rate_changed(ClusterSim *w, uint32_t slot);  // its rate is to be worked out
void cluster_sim_rates(ClusterSim *w);
void cluster_sim_round(ClusterSim *w);  // a round is over: whole iterations are counted

// Servers. Taking CHECKs that all of it is free and fills in mask and gpu_milli.
void cluster_sim_take(ClusterSim *w, uint32_t slot, ClusterSlice *s);
void cluster_sim_give(ClusterSim *w, uint32_t slot, const ClusterSlice *s);
void cluster_sim_resize_slice(ClusterSim *w, ClusterSlice *s, const ClusterSlice *to);

double cluster_sim_rate(const ClusterSim *w,
                        uint32_t          slot);  // with what it has now, beside whom it is

void *cluster_sim_borrow(ClusterSim *w,
                         size_t      bytes);  // contents undefined; aborts when there is none
void  cluster_sim_return(ClusterSim *w, void *p, size_t bytes);
