// NodeSim internals: the state of a run. sim_* functions: blocks in node_sim_block.c, plans in
// node_sim_plan.c.
#pragma once

#include "base/rng.h"
#include "node/admission.h"
#include "node/node_demand.h"
#include "node/sim/node_sim.h"

enum { SIM_ACTIONS = 512 };

typedef struct SimBlock {
    uint64_t         id;  // of the request
    uint32_t         tenant;
    const NodeModel *model;
    const uint8_t   *versions;
    Cores            cores, joining;
    uint32_t         n_cores, count;  // count: index into the model's core counts
    uint8_t         *slices;          // [n_slices]
    uint32_t         n_slices;
    uint32_t         first, layer, end;
    bool             starting;  // being dispatched
    double           core_ns;   // lower bound of the layer
    double           barrier_ns, jitter;
    const float     *bytes;      // of the layer, by cache share
    uint64_t         hot_bytes;  // in each slice
    double           moving;     // bytes from memory with its current cache share
    double           demand;     // bytes/ns at full speed
    double           full_ns;    // time of the layer at the current rates
    double           left;       // remaining fraction of the layer
    double           quiet_ns;   // time of the layer without interference
    TimeNs           since, finish, began;
} SimBlock;

typedef struct SimExtra {      // simulator's part of a request
    uint32_t block;            // while running
    TimeNs   waited, learned;  // learned: work reported to admission
    bool     unpromised;       // not admitted
    double   contention_ns, conflict_ns;
} SimExtra;

typedef struct NodeSim {
    const NodeRun         *run;
    const NodeMachineSpec *spec;
    NodeResult            *result;
    TimeNs                 now, wake;
    uint32_t               next_arrival;
    NodeRequest           *requests;
    SimExtra              *extras;
    uint32_t              *waiting, *running;
    uint32_t               n_requests, n_waiting, n_running;
    SimBlock              *blocks;  // [cores]
    uint32_t              *order;   // [n_running] blocks, in the order they started
    uint32_t              *idle;    // unused blocks
    uint32_t               n_idle;
    Cores                  free;
    uint32_t               n_free;
    uint64_t              *slice_hot;     // [slices] footprint of the blocks there
    uint16_t              *slice_blocks;  // [slices] number of blocks there
    double                *demands, *rates;
    double                 pressure;
    uint32_t               level;
    TimeNs                 watched;
    void                  *state;  // the policy's
    NodeAction            *actions;
    uint64_t              *named;    // [requests] last decision that named it
    uint32_t              *cursors;  // [tenants] first arrival with a deadline possibly ahead
    uint32_t               missed, answered;
    Admission              admission;
} NodeSim;

// Blocks.
void sim_start(NodeSim *s, uint32_t request, const NodeAction *x);
void sim_grow(NodeSim *s, uint32_t request, const NodeAction *x);
void sim_next_layer(NodeSim *s, SimBlock *b);  // starts it
void sim_leave(NodeSim *s, SimBlock *b);       // frees its cores
void sim_flow(NodeSim *s);                     // recomputes the rates of all blocks
void sim_watch(NodeSim *s);                    // updates pressure and level

// Requests.
void        sim_decide(NodeSim *s);
void        sim_to_running(NodeSim *s, uint32_t request);
void        sim_to_waiting(NodeSim *s, uint32_t request);
void        sim_answer(NodeSim *s, uint32_t request, Outcome o, const char *why);  // and removes it
const char *sim_why_late(const NodeSim *s, uint32_t request);
