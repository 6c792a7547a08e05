// NodeSim: a run in virtual time. Blocks are a fluid: each goes on at the rate that its cores, its
// share of cache and its share of the memory's bandwidth allow, until what co-runs changes.
#pragma once

#include "node/machine.h"
#include "node/node_run.h"

// setup.machine is machine_view's of the spec, the models have a demand. Ends when every request is
// answered. The same run gives the same records. A plan that is not legal aborts.
MUST_USE Err node_sim(const NodeRun *run, const NodeMachineSpec *spec, Arena *a, NodeResult *out);
