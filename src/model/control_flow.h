// Control flow: shape inference of If, Loop, Scan and SequenceMap, which have graphs as bodies.
#pragma once

#include "model/fold.h"
#include "model/shaped_graph.h"

typedef struct InferContext {
    EvalFn    *eval;
    Arena     *arena;        // owns the shaped graphs
    Arena      scratch;      // temporary
    FoldBudget budget;       // for constants that inference computes
    uint32_t   visits;       // nodes inferred so far
    uint32_t   conditional;  // enclosing bodies that may never run; errors in them wait for the run
} InferContext;

MUST_USE Err control_flow_infer(InferContext *x, ShapedGraph *s, const OpCall *c, Tensor *out);

// Infers one graph, in shaped_graph.c; outer is the enclosing shaped graph, NULL at the top.
MUST_USE Err shaped_graph_infer(InferContext *x, const Graph *g, const Tensor *inputs,
                                const ShapedGraph *outer, ShapedGraph **made);

// The body of a control flow node: which of its inputs and outputs correspond to the node's.
typedef struct ControlFlowBody {
    const Graph *graph;
    uint32_t     n_state;    // loop-carried values
    uint32_t     n_scan_in;  // Scan: inputs sliced, one slice per iteration
    uint32_t     n_stack;    // outputs stacked, one slice per iteration
    uint32_t     first;      // node input of the first loop-carried value
} ControlFlowBody;

MUST_USE Err control_flow_if(const Node *n, ControlFlowBody *then_body, ControlFlowBody *else_body);
MUST_USE Err control_flow_loop(const Node *n, ControlFlowBody *b);
MUST_USE Err control_flow_scan(const Node *n, ControlFlowBody *b);
MUST_USE Err control_flow_map(const Node *n, ControlFlowBody *b);

// Scan: the axis along which input or output k, of the given rank, is sliced, and the direction.
MUST_USE Err control_flow_scan_axis(const Node *n, bool output, uint32_t k, int32_t rank,
                                    int32_t *axis, bool *reverse);
