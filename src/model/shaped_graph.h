// ShapedGraph: a graph with every shape inferred for one set of input shapes.
//
// A model with dynamic dimensions is specialised once per set of input shapes, and the result is
// cached. Shape arithmetic inside the graph (Shape, Gather, Concat, Reshape, ...) is evaluated
// during inference, so that nodes with constant outputs do not run again.
#pragma once

#include "model/model.h"

// Computes one operator for constant folding, supplied by compile/. out has types and shapes set
// and zeroed data.
typedef Err EvalFn(const OpCall *c, Tensor *out);

typedef struct ShapedGraph ShapedGraph;

typedef struct ShapedBody {
    const Graph       *graph;
    const ShapedGraph *shaped;
} ShapedBody;

struct ShapedGraph {
    const Graph *graph;
    Tensor      *values;    // [n_values] type and shape where known, data where constant
    bool        *folded;    // [n_nodes] all outputs of the node are constants
    uint32_t    *last_use;  // [n_values] last node that reads the value; n_nodes for graph outputs
    ShapedBody  *bodies;    // of If, Loop, Scan, SequenceMap nodes
    uint32_t     n_bodies;
};

// The body of a control flow node; NULL when that branch can never run.
const ShapedGraph *shaped_graph_body(const ShapedGraph *s, const Graph *body);

// inputs: types and shapes of g's inputs, in order; each may be unknown. The result lives in arena.
// Without eval (NULL) no constant is computed.
MUST_USE Err shaped_graph_make(const Graph *g, const Tensor *inputs, EvalFn *eval, Arena *arena,
                               ShapedGraph **out);

// Fails unless the inputs have the types, ranks and sizes that the graph declares.
MUST_USE Err shaped_graph_check_inputs(const Graph *g, const Tensor *inputs);

// Fails when one symbolic dimension has two sizes. Some exporters use one name for all dynamic
// dimensions, so a mismatch alone rejects no model; it explains the failure of one that does not
// run.
MUST_USE Err shaped_graph_check_symbols(const Graph *g, const Tensor *inputs);

// ShapeCache: the shaped graphs of one model by input shapes, evicting the least recently used. Not
// thread-safe.
typedef struct ShapeCache {
    const Model *model;
    EvalFn      *eval;
    uint64_t     clock;
    struct ShapeCacheSlot {
        Arena        arena;
        ShapedGraph *shaped;
        Tensor      *inputs;
        uint64_t     used;
    } slots[8];
} ShapeCache;

void shape_cache_init(ShapeCache *s, const Model *m, EvalFn *eval);
void shape_cache_finish(ShapeCache *s);

// The result is valid until eight other sets of shapes are requested. The caller has checked
// inputs.
MUST_USE Err shape_cache_get(ShapeCache *s, const Tensor *inputs, const ShapedGraph **out);
