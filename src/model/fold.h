// Fold: computes once, at load, whatever depends on constants alone, and drops those nodes.
#pragma once

#include "model/special.h"

// The numbers of filled constants must be there. A node that cannot be computed stays as it is.
MUST_USE Err fold_constants(Model *m, EvalFn *eval);

// Computes one inferred call if all its inputs are there and each output needs at most max_bytes.
// The outputs' numbers live in keep. False, with nothing changed, when it is not done: that is no
// error, for the node may sit in a branch that never runs.
bool fold_call(const OpCall *c, EvalFn *eval, Arena *keep, size_t max_bytes, Tensor *out);
