// Model: the NodeModel of a program: times of its layers by version, cores and interference.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "compile/program.h"
#include "compile/tune/pressure.h"
#include "contract/node.h"
#include "node/node_demand.h"
#include "node/machine.h"

// By the physics of a machine; of each layer at most NODE_VERSIONS of all that its kernel offers.
// The program was made for the machine's instruction set and caches; it may be shape-only.
MUST_USE Err model_of_machine(const Program *p, const char *name, const NodeMachineSpec *s,
                              Arena *a, NodeModel *out);

// The same for a network of the zoo, batch 1.
MUST_USE Err model_of_zoo(const char *network, const NodeMachineSpec *s, Arena *a, NodeModel *out);

typedef struct ModelMeasured {
    const Pressure *pressure;  // of the machine it was measured on
    uint32_t        n_counts, counts[PROFILE_COUNTS];
    const TimeNs   *light_ns;  // [steps][n_counts] of steps without a profile; NULL: by their bytes
} ModelMeasured;

// From what was measured: version i of a layer is versions[i] of its step.
MUST_USE Err model_of_profiles(const Program *p, const char *name, const ModelMeasured *m, Arena *a,
                               NodeModel *out);

// ModelJson: a NodeModel as JSON and back, so that the records of a run carry what was known of its
// networks. Times and bytes are rounded to whole ones.

json_t      *model_to_json(const NodeModel *m);  // NULL without memory; the model has a demand
MUST_USE Err model_from_json(const json_t *j, Arena *a, NodeModel *out);
