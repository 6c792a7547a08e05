// Product: matrices and lone vectors multiplied by NumPy's rule, on the reference kernel.
#pragma once

#include "kernel/ref_matmul.h"
#include "model/op.h"

MUST_USE Err run_product(const OpCall *c, const RefMatMul *p, const Tensor *a, const Tensor *b,
                         const Tensor *y);
