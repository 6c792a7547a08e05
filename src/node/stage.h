// Stage: a network made ready to be served: compiled, measured, with a table of its times.
#pragma once

#include "compile/program.h"
#include "contract/node.h"
#include "node/host.h"
#include "node/node_live.h"

typedef struct StageOptions {
    uint32_t runs;          // measured, of each version on each number of cores; 0: 16
    double   tune_seconds;  // spent on looking for versions that the store does not know
    uint64_t seed;          // of the inputs; 0: 1
    bool     background;    // others run: one core's own time is measured, more are reckoned
} StageOptions;

typedef struct Stage {
    Arena     arena;  // of the table and the inputs
    Model     model;
    Special  *special;
    Program   program;
    NodeModel table;
    Tensor   *inputs;                   // at random
    double    solo_ns[PROFILE_COUNTS];  // the whole network on the host's numbers of cores
} Stage;

// what: a name of the zoo or an ONNX file; its open dimensions are 1. The host's team is used
// unless in the background.
MUST_USE Err stage_load(Stage *s, const char *what, Host *h, const StageOptions *o);
void         stage_finish(Stage *s);  // accepts a zeroed Stage

// As a tenant of an engine; the stage must outlive it.
LiveTenant stage_tenant(const Stage *s, const char *name, TimeNs qos_ns, double priority);
