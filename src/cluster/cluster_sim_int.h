// What the files of cluster_sim share: the state of a run.
#pragma once

#include "cluster/usage.h"
#include "cluster/due.h"
#include "cluster/run.h"

typedef struct Life {       // of a task, what policies are not told
    TimeNs        left;     // of its work at the task's mark, owed with it
    TimeNs        guess;    // of all its work, for those who are told a prediction
    uint32_t      job;      // in the trace
    uint32_t      room;     // of slices
    bool          changed;  // what it has, or who is beside it
    ClusterSlice  one;      // most have one slice
    ClusterSlice *slices;
} Life;

typedef struct Lane {  // slots by entry, in an array that is cut at both ends
    uint32_t *at;      // [2 * n_slots]
    uint32_t  first, n, room;
} Lane;

typedef struct Yard {  // a server
    uint16_t *parts;   // [gpus] free thousandths
    uint32_t *residents;
    uint32_t  room;
} Yard;

typedef struct World {
    const ClusterRun *run;
    Arena            *arena;
    ClusterSetup      setup;
    ClusterResult    *result;
    void             *state;  // the policy's
    TimeNs            now, wake, round;
    uint32_t          next_arrival, n_alive;
    ClusterTask      *tasks;  // [n_slots]
    Life             *lives;  // [n_slots]
    uint32_t         *free;   // slots that were in use
    uint32_t          n_free, n_fresh;
    uint64_t          entries;
    Lane              waiting, running;
    ServerState      *servers;
    Yard             *yards;
    Due               ends;
    uint32_t         *changed;  // [n_changed] slots whose rate is to be worked out
    uint32_t          n_changed;
    ClusterAction    *actions;
    uint32_t          max_actions;
    void             *spare[32];  // memory to use again, by power of two
    Rng               guesses;
    Usage             usage;
    uint64_t          used_gpu_milli, used_cores, used_memory;
    uint64_t          idle_rounds;
} World;

// Lanes.
void world_lane_add(Lane *l, uint32_t slot);
void world_lane_remove(World *w, Lane *l, uint32_t slot);

// Tasks.
void world_arrive(World *w);
void world_end(World *w, uint32_t slot);
void world_start(World *w, uint32_t slot, const ClusterSlice *s, uint32_t n);
void world_preempt(World *w, uint32_t slot);
void world_level(World *w, uint32_t slot, const ClusterSlice *s, uint32_t n);
void world_touch(World *w, uint32_t slot);  // its rate is to be worked out
void world_rates(World *w);
void world_round(World *w);  // a round is over: whole iterations are counted

// Servers. Taking CHECKs that all of it is free and fills in mask and gpu_milli.
void world_take(World *w, uint32_t slot, ClusterSlice *s);
void world_give(World *w, uint32_t slot, const ClusterSlice *s);
void world_relevel(World *w, ClusterSlice *s, const ClusterSlice *to);

double world_rate(const World *w, uint32_t slot);  // with what it has now, beside whom it is

void *world_borrow(World *w, size_t bytes);  // contents undefined; aborts when there is none
void  world_return(World *w, void *p, size_t bytes);
