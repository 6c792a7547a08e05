// Interp: runs a graph node by node on the reference kernels. Slow and simple: the reference for
// compiled programs.
#pragma once

#include "model/shaped_graph.h"

typedef struct InterpLimits {
    size_t      max_bytes;       // of live intermediate values and temporaries; 0: no limit
    const char *setting;         // that max_bytes comes from, for messages; NULL: none
    uint64_t    max_iterations;  // iterations of all loops together; 0: no limit
    int64_t     max_macs;        // multiply-accumulates of the whole run; 0: no limit
} InterpLimits;

// Inputs and outputs are in the graph's order; output data lives in out_arena. Errors name the
// node. Shapes found at run time are checked against the inferred ones.
MUST_USE Err interp_run(const ShapedGraph *s, const Tensor *inputs, const InterpLimits *limits,
                        Arena *out_arena, Tensor *outputs);

// The reference kernels as evaluator for constant folding and shape inference.
EvalFn interp_eval;
