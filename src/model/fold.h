// Fold: computes once, at load, whatever depends on constants alone, and drops those nodes.
#pragma once

#include "model/shaped_graph.h"

// The numbers of filled constants must be there. A node that cannot be computed stays as it is.
MUST_USE Err fold_constants(Model *m, EvalFn *eval);

typedef struct FoldBudget {
    Arena *keep;  // the outputs' numbers live here
    size_t each;  // bytes one output may need
    size_t left;  // bytes that all together may still need
} FoldBudget;

// Computes one inferred call if its inputs' numbers are there and there is room. False, with
// nothing changed, when it is not done: that is no error, for the node may sit where it never runs.
bool fold_call(const OpCall *c, EvalFn *eval, FoldBudget *room, Tensor *out);
