// Fold: computes once, at load, whatever depends on constants alone, and drops those nodes.
#pragma once

#include "model/special.h"

// The numbers of filled constants must be there. A node that cannot be computed stays as it is.
MUST_USE Err fold_constants(Model *m, EvalFn *eval);
