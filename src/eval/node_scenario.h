// NodeScenario: the tenants of a mix on a machine, simulated or live, ready for runs.
#pragma once

#include "eval/policy_choice.h"
#include "node/machine.h"
#include "node/mix.h"
#include "node/node_run.h"

typedef struct NodeScenarioOptions {
    const char *machine;  // simulated machine; NULL: this machine, live
    const char *mix;
    double      slack;  // target: slack times the latency alone; 0: see node_scenario_open
    const char *store;  // profile store of live runs; NULL: in the cache directory
} NodeScenarioOptions;

typedef struct NodeScenarioLive NodeScenarioLive;

typedef struct NodeScenario {
    const char       *machine;  // display name
    NodeMachineSpec   spec;     // parameters of the simulation
    NodeMachine       view;
    Mix               mix;
    NodeModel        *models;   // [mix.n]
    NodeTenant       *tenants;  // [mix.n]
    double            share[MIX_TENANTS];
    NodeSetup         setup;
    double            capacity;  // requests/s with every core busy on requests of its own
    bool              measured;  // profiles were measured on this machine
    NodeScenarioLive *live;      // NULL: virtual time
} NodeScenario;

// Without a slack, machines of 32 cores and more get the targets of the VELTAIR paper, others
// MIX_SLACK times the latency alone. The scenario must not move until node_scenario_close.
MUST_USE Err node_scenario_open(const NodeScenarioOptions *o, Arena *a, NodeScenario *out);
void         node_scenario_close(NodeScenario *s);  // accepts a zeroed one

typedef struct NodeTraffic {
    const PolicyChoice *choice;
    double              rate;
    uint64_t            seed;
    uint32_t   requests;  // 0: live those of NODE_SCENARIO_SECONDS, else NODE_SCENARIO_REQUESTS
    double     give_up;   // see NodeRun
    bool       admit;     // likewise
    RecordSink records;
} NodeTraffic;

enum { NODE_SCENARIO_SECONDS = 5, NODE_SCENARIO_REQUESTS = 2000, NODE_SCENARIO_LEAST = 60 };

// Poisson arrivals at a rate. In virtual time any number of threads may share a scenario.
MUST_USE Err node_scenario_run(const NodeScenario *s, const NodeTraffic *r, Arena *a, NodeRun *run,
                               NodeResult *out);
// With the arrivals of `run`.
MUST_USE Err node_scenario_replay(const NodeScenario *s, const NodeRun *run, Arena *a,
                                  NodeResult *out);

// Networks and their targets, one sentence.
char *node_scenario_about(const NodeScenario *s, Arena *a);

// Sets the targets that the mix leaves open.
MUST_USE Err node_scenario_targets(NodeScenario *s, double slack);
