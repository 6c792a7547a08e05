// Fold: constant folding: nodes with only constant inputs are computed at load and removed.
#pragma once

#include "model/shaped_graph.h"

// Random constants must be materialised. A node that cannot be computed stays in the graph.
MUST_USE Err fold_constants(Model *m, EvalFn *eval);

typedef struct FoldBudget {
    Arena *keep;  // holds the outputs' data
    size_t each;  // limit per output, bytes
    size_t left;  // bytes left for all outputs
} FoldBudget;

// Computes a call with inferred outputs, if its inputs have data and the budget allows.
// Returns false, with nothing changed, otherwise: not an error, because the node may never run.
bool fold_call(const OpCall *c, EvalFn *eval, FoldBudget *budget, Tensor *out);
