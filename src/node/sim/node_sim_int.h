// What the files of node_sim share: the state of a run.
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
    uint32_t         n_cores, count;  // count: index of the model's
    uint8_t         *slices;          // [n_slices]
    uint32_t         n_slices;
    uint32_t         first, layer, end;
    bool             starting;  // on its way to the first layer
    double           core_ns;   // of the layer, at least
    double           barrier_ns, jitter;
    const float     *bytes;      // of the layer by share of cache
    uint64_t         hot_bytes;  // in each slice
    double           moving;     // bytes from the memory, by the share it has now
    double           demand;     // bytes a nanosecond that would not slow it down
    double           full_ns;    // the layer, if all stayed as it is
    double           left;       // part of the layer that remains
    double           quiet_ns;   // the layer, without neighbours
    TimeNs           since, finish, began;
} SimBlock;

typedef struct SimExtra {      // of a request, beside what policies see
    uint32_t block;            // while it runs
    TimeNs   waited, learned;  // learned: of what it computed, for admission
    bool     unpromised;       // it was not let in
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
    uint32_t              *idle;    // blocks that are not in use
    uint32_t               n_idle;
    Cores                  free;
    uint32_t               n_free;
    uint64_t              *slice_hot;     // [slices] bytes that blocks go through there
    uint16_t              *slice_blocks;  // [slices] blocks there
    double                *demands, *rates;
    double                 pressure;
    uint32_t               level;
    TimeNs                 watched;
    void                  *state;  // the policy's
    NodeAction            *actions;
    uint64_t              *named;    // [requests] the decision that named it last
    uint32_t              *cursors;  // [tenants] the first arrival whose deadline may be ahead
    uint32_t               missed, answered;
    Admission              admission;
} NodeSim;

// Blocks.
void sim_start(NodeSim *s, uint32_t request, const NodeAction *x);
void sim_grow(NodeSim *s, uint32_t request, const NodeAction *x);
void sim_next_layer(NodeSim *s, SimBlock *b);  // begins it
void sim_leave(NodeSim *s, SimBlock *b);       // gives its cores back
void sim_flow(NodeSim *s);                     // works out how fast everybody goes on from now
void sim_watch(NodeSim *s);                    // pressure and level

// Requests.
void        sim_decide(NodeSim *s);
void        sim_to_running(NodeSim *s, uint32_t request);
void        sim_to_waiting(NodeSim *s, uint32_t request);
void        sim_answer(NodeSim *s, uint32_t request, Outcome o, const char *why);  // and forget it
const char *sim_why_late(const NodeSim *s, uint32_t request);
