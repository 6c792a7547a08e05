// Interp: runs a graph node by node on the reference kernels. Slow, obvious, and the truth.
#pragma once

#include "model/shaped_graph.h"

typedef struct InterpLimits {
    size_t   max_bytes;   // of live intermediate values; 0: no limit
    uint64_t max_rounds;  // of all loops together; 0: no limit
    int64_t  max_macs;    // of the whole run; 0: no limit
} InterpLimits;

// inputs and outputs in the graph's order; outputs' numbers live in out_arena. A failure names the
// node. The shapes found at run time are checked against the specialisation's.
MUST_USE Err interp_run(const ShapedGraph *s, const Tensor *inputs, const InterpLimits *limits,
                        Arena *out_arena, Tensor *outputs);

// Reference kernels as the evaluator that folding and specialisation ask for.
EvalFn interp_eval;
