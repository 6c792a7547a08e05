// What the files of chip_sim share: the state of a run.
#pragma once

#include <math.h>

#include "chip/run.h"
#include "sim/heap.h"

enum { ENGINE_ACTIONS = 512 };

// Of units, an array each, so that loops over them are short.
typedef struct Lanes {
    TimeNs   event[CHIP_UNITS];  // when its layer begins or ends; INT64_MAX: it is free
    TimeNs   begin[CHIP_UNITS];  // of its layer, after the dispatch
    TimeNs   since[CHIP_UNITS];  // when `left` was right
    double   left[CHIP_UNITS];   // nanoseconds of its layer, had it all the bandwidth
    double   speed[CHIP_UNITS];  // of the layer; 1: as if alone. 0: it has not begun
    double   wants[CHIP_UNITS];  // bytes a nanosecond, of layers on units
    double   asks[CHIP_UNITS];   // the same of layers that have begun
    double   part[CHIP_UNITS];   // of full speed that a throttle leaves; 1: all
    double   got[CHIP_UNITS];    // bytes a nanosecond
    uint8_t  starting[CHIP_UNITS], runs[CHIP_UNITS];
    uint32_t n;
} Lanes;

struct ChipEngine {
    const ChipRun *run;
    Arena         *arena;
    ChipSetup      setup;
    ChipFuture     future;
    ChipResult    *result;
    void          *state;  // the policy's
    TimeNs         now, wake, tick, adopt;
    uint32_t       next_arrival, answered;
    ChipTask      *tasks;
    uint32_t      *place;    // [trace.n] of a request among tasks
    uint32_t      *line;     // [room] where `waiting` moves to and fro
    uint32_t      *waiting;  // [n_waiting] tasks by arrival, in `line`
    uint32_t       room;
    uint32_t      *slots;  // [n_slots] that are not in use, the last first
    uint32_t       n_tasks, n_waiting, n_slots_left;
    ChipUnit       units[CHIP_UNITS];
    uint32_t       free[CHIP_UNITS];
    uint32_t       n_free;
    Lanes          lanes;
    bool           changed;    // what runs, or how much it may ask for
    Heap           deadlines;  // of requests; firm only
    ChipTally      tallies[CHIP_TENANTS];
    ChipAction     actions[ENGINE_ACTIONS];
    uint64_t       dropped_layers;  // computed for requests that were dropped
    uint64_t       finished_layers;
    uint32_t       idle_rounds;  // with tasks, but nothing that runs or arrives
};
typedef struct ChipEngine Engine;

// Tasks.
void engine_arrive(Engine *e);
void engine_to_unit(Engine *e, uint32_t task, uint32_t unit);
void engine_to_waiting(Engine *e, uint32_t task);
void engine_answer(Engine *e, uint32_t task, Outcome o);  // the task stays
void engine_forget(Engine *e, uint32_t task);

// Units.
void engine_start(Engine *e, uint32_t task, uint32_t unit);
void engine_throttle(Engine *e, uint32_t unit, float cap);
bool engine_units(Engine *e);  // what happens on units now; true when a layer ended
void engine_flow(Engine *e);   // works out how fast everybody goes on from now

// The policy.
ChipView engine_view(Engine *e);
void     engine_decide(Engine *e);
void     engine_think(Engine *e);
