// What the files of chip_sim share: the state of a run.
#pragma once

#include <math.h>
#include <stdint.h>

#include "base/heap.h"
#include "chip/sim/chip_run.h"

enum { CHIP_SIM_ACTIONS = 512 };

// Of units, an array each, so that loops over them are short.
typedef struct UnitProgress {
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
} UnitProgress;

struct ChipEngine {
    const ChipRun  *run;
    Arena          *arena;
    ChipSetup       setup;
    ChipFuture      future;
    ChipResult     *result;
    void           *state;  // the policy's
    TimeNs          now, wake, tick, commit_at;
    uint32_t        next_arrival, answered;
    ChipTask       *tasks;
    uint32_t       *place;    // [trace.n] of a request among tasks
    uint32_t       *line;     // [room] where `waiting` moves to and fro
    uint32_t       *waiting;  // [n_waiting] tasks by arrival, in `line`
    uint32_t        room;
    uint32_t       *slots;  // [n_slots] that are not in use, the last first
    uint32_t        n_tasks, n_waiting, n_slots_left;
    ChipUnit        units[CHIP_UNITS];
    uint32_t        free[CHIP_UNITS];
    uint32_t        n_free;
    UnitProgress    progress;
    bool            changed;    // what runs, or how much it may ask for
    Heap            deadlines;  // of requests; firm only
    ChipTenantStats tenant_stats[CHIP_TENANTS];
    ChipAction      actions[CHIP_SIM_ACTIONS];
    uint64_t        dropped_layers;  // computed for requests that were dropped
    uint64_t        finished_layers;
    uint32_t        idle_rounds;  // with tasks, but nothing that runs or arrives
};
typedef struct ChipEngine ChipSim;

// Tasks.
void chip_sim_arrive(ChipSim *e);
void chip_sim_task_to_unit(ChipSim *e, uint32_t task, uint32_t unit);
void chip_sim_task_to_waiting(ChipSim *e, uint32_t task);
void chip_sim_answer(ChipSim *e, uint32_t task, Outcome o);  // the task stays
void chip_sim_remove_task(ChipSim *e, uint32_t task);

// Units.
void chip_sim_start(ChipSim *e, uint32_t task, uint32_t unit);
void chip_sim_throttle(ChipSim *e, uint32_t unit, float cap);
bool chip_sim_unit_events(ChipSim *e);  // what happens on units now; true when a layer ended
void chip_sim_set_speeds(ChipSim *e);   // works out how fast everybody goes on from now

// The policy.
ChipView chip_sim_view(ChipSim *e);
void     chip_sim_decide(ChipSim *e);
void     chip_sim_plan(ChipSim *e);

// Share: how layers that run at once divide the memory's bandwidth.

// Of x[n], always summed in the same order.
double bandwidth_total(const double *x, uint32_t n);

// All slow down alike: the speed of each, 1 when the memory has enough for all of asks[n].
double bandwidth_equal_speed(const double *asks, uint32_t n, double bytes_ns);

// Max-min fair: out[i] is what i gets of bytes_ns, never more than it asks for. Whoever asks for
// less than an equal share leaves the rest to the others.
void bandwidth_max_min(const double *asks, uint32_t n, double bytes_ns, double *out);
