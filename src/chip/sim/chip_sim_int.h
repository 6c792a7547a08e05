// ChipSim: the state of a simulated run, shared by the files of the simulator.
#pragma once

#include <math.h>
#include <stdint.h>

#include "base/heap.h"
#include "chip/sim/chip_run.h"

enum { CHIP_SIM_ACTIONS = 512 };

// Layers on units, as arrays, which keeps loops over units short.
typedef struct UnitProgress {
    TimeNs   event[CHIP_UNITS];   // when the layer begins or ends; INT64_MAX: the unit is free
    TimeNs   begin[CHIP_UNITS];   // of the layer, after the dispatch
    TimeNs   since[CHIP_UNITS];   // time to which `left` refers
    double   left[CHIP_UNITS];    // ns of the layer at full speed
    double   speed[CHIP_UNITS];   // 1: as if alone; 0: not begun
    double   demand[CHIP_UNITS];  // bytes/ns of the layer, throttled
    double   active[CHIP_UNITS];  // the same of layers that have begun
    double   share[CHIP_UNITS];   // of full speed that a throttle leaves; 1: no throttle
    double   got[CHIP_UNITS];     // bytes/ns
    uint8_t  starting[CHIP_UNITS], runs[CHIP_UNITS];
    uint32_t n;
} UnitProgress;

struct ChipEngine {
    const ChipRun  *run;
    Arena          *arena;
    ChipSetup       setup;
    ChipFuture      future;
    ChipResult     *result;
    void           *state;  // of the policy
    TimeNs          now, wake, tick, commit_at;
    uint32_t        next_arrival, answered;
    ChipTask       *tasks;    // [n_tasks]
    uint32_t       *index;    // [trace.n] of a request in tasks
    uint32_t       *buffer;   // [room] that `waiting` moves in
    uint32_t       *waiting;  // [n_waiting] tasks by arrival, a part of buffer
    uint32_t        room;
    uint32_t       *slots;  // free slots, a stack
    uint32_t        n_tasks, n_waiting, n_slots_left;
    ChipUnit        units[CHIP_UNITS];
    uint32_t        free[CHIP_UNITS];  // [n_free] ascending
    uint32_t        n_free;
    UnitProgress    progress;
    bool            changed;    // the running layers or their demand, since the speeds were set
    Heap            deadlines;  // of requests, if the deadlines are firm
    ChipTenantStats tenant_stats[CHIP_TENANTS];
    ChipAction      actions[CHIP_SIM_ACTIONS];
    uint64_t        dropped_layers;  // computed for requests that were dropped
    uint64_t        finished_layers;
    uint32_t        idle_rounds;  // consecutive, with tasks but no running layer and no arrival
};
typedef struct ChipEngine ChipSim;

// chip_sim_tasks.c
void chip_sim_arrive(ChipSim *sim);  // the next request of the trace
void chip_sim_task_to_unit(ChipSim *sim, uint32_t task, uint32_t unit);
void chip_sim_task_to_waiting(ChipSim *sim, uint32_t task);
void chip_sim_answer(ChipSim *sim, uint32_t task, Outcome o);  // the task stays
void chip_sim_remove_task(ChipSim *sim, uint32_t task);

// chip_sim_units.c
void chip_sim_start(ChipSim *sim, uint32_t task, uint32_t unit);
void chip_sim_throttle(ChipSim *sim, uint32_t unit, float cap);
bool chip_sim_unit_events(ChipSim *sim);  // handles those due now; true if a layer ended
void chip_sim_set_speeds(ChipSim *sim);   // of all running layers, by the memory's bandwidth

// chip_sim_policy.c
ChipView chip_sim_view(ChipSim *sim);
void     chip_sim_decide(ChipSim *sim);
void     chip_sim_plan(ChipSim *sim);

// Bandwidth sharing, in chip_sim_units.c. bandwidth_total sums x[n] in a fixed order.
double bandwidth_total(const double *x, uint32_t n);
// The speed of all layers if they slow down alike; 1 if their demand[n] fits bytes_ns.
double bandwidth_equal_speed(const double *demand, uint32_t n, double bytes_ns);
// Max-min fair shares out[n] of bytes_ns, none above its demand.
void bandwidth_max_min(const double *demand, uint32_t n, double bytes_ns, double *out);
