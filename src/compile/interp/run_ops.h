// Run: computes one operator on the reference kernels. Inference accepted the call before.
#pragma once

#include "kernel/ref/ref_conv.h"
#include "kernel/ref/ref_matmul.h"
#include "kernel/ref/ref_resize.h"
#include "model/attr.h"
#include "model/infer/infer.h"
#include "model/infer/infer_params.h"
#include "model/op.h"
#include "model/params/sliding_window.h"

// out[node->n_out] has its final type and shape and room for the numbers (TENSOR_ALIGN). The data
// of every input is there. Fails only where the numbers themselves are wrong, as an index can be.
typedef Err RunFn(const OpCall *c, Tensor *out);

#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family) RunFn run_##family;
#include "model/op.def"
#undef XD

RunFn *run_op(OpId op);

// How long a sequence, an optional or a loop's stack may keep memory: the call's keep arena.
MUST_USE Err run_copy(const OpCall *c, const Tensor *t, Tensor *copy);  // deep copy

// View: a tensor's numbers under another shape, and room for as many of another type.

// A list [n] as [n, 1, ...] with that many ones behind; one number as a scalar; others unchanged.
Tensor run_column(const Tensor *t, int32_t ones);

Tensor run_matrix(const Tensor *t, bool left);  // a vector as a row (left) or a column matrix

// Zeroed room of a type in the call's scratch, shaped like t.
MUST_USE Err run_room(const OpCall *c, const Tensor *t, DType type, Tensor *out);
MUST_USE Err run_wide(const OpCall *c, const Tensor *t, Tensor *out);  // of float64

// Product: matrices and lone vectors multiplied by NumPy's rule, on the reference kernel.

MUST_USE Err run_product(const OpCall *c, const RefMatMul *p, const Tensor *a, const Tensor *b,
                         const Tensor *y);

// SlidingWindow: hands the model's windows to the kernels.

RefWindow run_window(const SlidingWindow *w);

// Resize: hands the model's resizing to the kernels.

MUST_USE Err run_resize_params(const OpCall *c, int32_t rank, RefResize *p);

// FusedActivation: applies the activation of a fused operator to its result.

MUST_USE Err run_activation(const Node *n, Tensor *y);
