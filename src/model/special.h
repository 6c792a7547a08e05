// Special: a graph with its shapes worked out for one set of input shapes.
//
// A model with open dimensions is specialised once per set of input shapes and the result is kept.
// Shape arithmetic inside the graph (Shape, Gather, Concat, Reshape, ...) is carried out on the
// way, so that nodes whose outputs are constants need not run again.
#pragma once

#include "model/model.h"

// Computes one operator; what folding needs from whoever has kernels. Same contract as run.h.
typedef Err EvalFn(const OpCall *c, Tensor *out);

typedef struct Special Special;

typedef struct SpecialBody {
    const Graph   *graph;
    const Special *special;
} SpecialBody;

struct Special {
    const Graph *graph;
    Tensor      *values;    // [n_values] type and shape where known, data where constant
    bool        *folded;    // [n_nodes] its outputs are constants
    uint32_t    *last_use;  // [n_values] last node that reads it; n_nodes for outputs of the graph
    SpecialBody *bodies;    // of If, Loop, Scan, SequenceMap nodes
    uint32_t     n_bodies;
};

// The body of a control flow node; NULL when that branch can never run.
const Special *special_body(const Special *s, const Graph *body);

// Types of g's inputs in order; a tensor may be unknown. Everything lives in arena. eval may be
// NULL.
MUST_USE Err special_make(const Graph *g, const Tensor *inputs, EvalFn *eval, Arena *arena,
                          Special **out);

// Fails unless the inputs fit what the graph declares: types, ranks, sizes.
MUST_USE Err special_check_inputs(const Graph *g, const Tensor *inputs);

// Fails when one symbol stands for two sizes. Some exporters use one name for everything that is
// open, so this is no reason to refuse a model that works, but a good one to give when it does not.
MUST_USE Err special_check_symbols(const Graph *g, const Tensor *inputs);

// The specialisations of one model, least recently used dropped first. Not for several threads.
typedef struct Specials {
    const Model *model;
    EvalFn      *eval;
    uint64_t     clock;
    struct SpecialSlot {
        Arena    arena;
        Special *special;
        Tensor  *inputs;
        uint64_t used;
    } slots[8];
} Specials;

void specials_init(Specials *s, const Model *m, EvalFn *eval);
void specials_finish(Specials *s);

// Valid until eight other shapes were asked for. Trusts the inputs' types: check them before.
MUST_USE Err specials_get(Specials *s, const Tensor *inputs, const Special **out);
