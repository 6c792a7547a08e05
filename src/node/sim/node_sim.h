// NodeSim: a run in virtual time. Blocks progress as fluids: at the rate that their cores, their
// share of cache and of memory bandwidth allow, until the set of running blocks changes.
#pragma once

#include "node/machine.h"
#include "node/node_run.h"

// setup.machine is machine_view(spec), the models have a demand. Ends when every request is
// finished. The same run gives the same records. An illegal plan aborts.
MUST_USE Err node_sim(const NodeRun *run, const NodeMachineSpec *spec, Arena *a, NodeResult *out);
