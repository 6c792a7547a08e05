// Builds the NodeModel of a program: layer times by version, cores and interference level.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "compile/program.h"
#include "compile/tune/pressure.h"
#include "contract/node.h"
#include "node/node_demand.h"
#include "node/machine.h"

// From a machine description; of each layer at most NODE_VERSIONS of the versions its kernel
// offers. The program was made for the machine's instruction set and caches; it may be shape-only.
MUST_USE Err model_of_machine(const Program *p, const char *name, const NodeMachineSpec *s,
                              Arena *a, NodeModel *out);

// The same for a zoo network, batch 1.
MUST_USE Err model_of_zoo(const char *network, const NodeMachineSpec *s, Arena *a, NodeModel *out);

typedef struct ModelMeasured {
    const Pressure *pressure;  // of the machine measured on
    uint32_t        n_counts, counts[PROFILE_COUNTS];
    const TimeNs *
        light_ns;  // [steps][n_counts] of steps without a profile; NULL: estimated from their bytes
} ModelMeasured;

// From measured profiles: version i of a layer is versions[i] of its step.
MUST_USE Err model_of_profiles(const Program *p, const char *name, const ModelMeasured *m, Arena *a,
                               NodeModel *out);

// Multiplies all times on counts[k] cores by factors[k]. The tables are in the arena that the model
// was made in.
void model_scale(NodeModel *m, const double *factors);

// NodeModel to JSON and back, so that the records of a run carry the tables of its
// networks. Times and bytes are rounded to integers.

json_t      *model_to_json(const NodeModel *m);  // NULL without memory; the model has a demand
MUST_USE Err model_from_json(const json_t *j, Arena *a, NodeModel *out);
