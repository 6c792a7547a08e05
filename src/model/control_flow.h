// Flow: shapes through If, Loop, Scan and SequenceMap, whose bodies are graphs of their own.
#pragma once

#include "model/fold.h"
#include "model/shaped_graph.h"

typedef struct InferContext {
    EvalFn    *eval;
    Arena     *arena;    // what is made lives here
    Arena      scratch;  // what is forgotten
    FoldBudget room;     // for constants found on the way
    uint32_t   visits;   // nodes looked at so far
    uint32_t   maybe;  // bodies around us that may never run: there, a misfit is found at run time
} InferContext;

MUST_USE Err control_flow_infer(InferContext *x, ShapedGraph *s, const OpCall *c, Tensor *out);

// Specialises one graph; outer is the enclosing one's specialisation, NULL at the top.
MUST_USE Err shaped_graph_infer(InferContext *x, const Graph *g, const Tensor *inputs,
                                const ShapedGraph *outer, ShapedGraph **made);

// The body of a control flow node and how its inputs and outputs line up with the node's.
typedef struct ControlFlowBody {
    const Graph *graph;
    uint32_t     n_state;    // carried from round to round
    uint32_t     n_scan_in;  // Scan: sliced, one slice a round
    uint32_t     n_stack;    // stacked, one slice a round
    uint32_t     first;      // node input that is the first state
} ControlFlowBody;

MUST_USE Err control_flow_if(const Node *n, ControlFlowBody *then_body, ControlFlowBody *else_body);
MUST_USE Err control_flow_loop(const Node *n, ControlFlowBody *b);
MUST_USE Err control_flow_scan(const Node *n, ControlFlowBody *b);
MUST_USE Err control_flow_map(const Node *n, ControlFlowBody *b);

// Scan: along which axis input or output k is cut, and whether backwards. rank is the whole's.
MUST_USE Err control_flow_scan_axis(const Node *n, bool output, uint32_t k, int32_t rank,
                                    int32_t *axis, bool *reverse);
