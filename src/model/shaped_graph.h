// ShapedGraph: a graph with its shapes worked out for one set of input shapes.
//
// A model with open dimensions is specialised once per set of input shapes and the result is kept.
// Shape arithmetic inside the graph (Shape, Gather, Concat, Reshape, ...) is carried out on the
// way, so that nodes whose outputs are constants need not run again.
#pragma once

#include "model/model.h"

// Computes one operator; what folding needs from whoever has kernels. Same contract as run.h.
typedef Err EvalFn(const OpCall *c, Tensor *out);

typedef struct ShapedGraph ShapedGraph;

typedef struct ShapedBody {
    const Graph       *graph;
    const ShapedGraph *shaped;
} ShapedBody;

struct ShapedGraph {
    const Graph *graph;
    Tensor      *values;    // [n_values] type and shape where known, data where constant
    bool        *folded;    // [n_nodes] its outputs are constants
    uint32_t    *last_use;  // [n_values] last node that reads it; n_nodes for outputs of the graph
    ShapedBody  *bodies;    // of If, Loop, Scan, SequenceMap nodes
    uint32_t     n_bodies;
};

// The body of a control flow node; NULL when that branch can never run.
const ShapedGraph *shaped_graph_body(const ShapedGraph *s, const Graph *body);

// Types of g's inputs in order; a tensor may be unknown. Everything lives in arena. eval may be
// NULL.
MUST_USE Err shaped_graph_make(const Graph *g, const Tensor *inputs, EvalFn *eval, Arena *arena,
                               ShapedGraph **out);

// Fails unless the inputs fit what the graph declares: types, ranks, sizes.
MUST_USE Err shaped_graph_check_inputs(const Graph *g, const Tensor *inputs);

// Fails when one symbol stands for two sizes. Some exporters use one name for everything that is
// open, so this is no reason to refuse a model that works, but a good one to give when it does not.
MUST_USE Err shaped_graph_check_symbols(const Graph *g, const Tensor *inputs);

// The specialisations of one model, least recently used dropped first. Not for several threads.
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

// Valid until eight other shapes were asked for. Trusts the inputs' types: check them before.
MUST_USE Err shape_cache_get(ShapeCache *s, const Tensor *inputs, const ShapedGraph **out);
