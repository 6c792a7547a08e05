// Run: evaluates one operator on the reference kernels, after inference has accepted the call.
// run_FAMILY is in run_*.c, by theme; the other functions before run_column in interp.c.
#pragma once

#include "base/budget.h"
#include "kernel/ref/ref_attention.h"
#include "kernel/ref/ref_conv.h"
#include "kernel/ref/ref_matmul.h"
#include "kernel/ref/ref_resize.h"
#include "model/attr.h"
#include "model/infer/infer.h"
#include "model/infer/infer_params.h"
#include "model/op.h"
#include "model/params/attention.h"
#include "model/params/sliding_window.h"

// out[node->n_out] has its type, shape and memory (TENSOR_ALIGN); all input data is present. Fails
// only for bad data, such as an index out of range.
typedef Err RunFn(const OpCall *c, Tensor *out);

#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family) RunFn run_##family;
#include "model/op.def"
#undef XD

RunFn *run_op(OpId op);

// The error of a run that needs more bytes than a budget has left: names its setting.
Err run_over_budget(const Budget *b, size_t bytes);

// After a call failed with ERR_LIMIT: if one of its arenas had no room, the reason names the bytes
// and the budget's setting. Returns ERR_LIMIT.
Err run_explain_limit(const OpCall *c, const Budget *b);

// Deep copy. Elements of sequences and optionals live in the call's `keep` arena.
MUST_USE Err run_copy(Arena *keep, const Tensor *t, Tensor *copy);

// run_move.c: views, and memory for temporaries.

// A vector [n] as [n, 1, ...] with `ones` trailing ones; a single element as a scalar; others
// unchanged.
Tensor run_column(const Tensor *t, int32_t ones);

Tensor run_matrix(const Tensor *t, bool left);  // a vector as a row (left) or a column matrix

// Zeroed tensor of a type in the call's scratch arena, shaped like t.
MUST_USE Err run_alloc(const OpCall *c, const Tensor *t, DType type, Tensor *out);
MUST_USE Err run_alloc_f64(const OpCall *c, const Tensor *t, Tensor *out);  // of type float64

// run_dense.c: matrix product by NumPy's rules for vectors and batches.

MUST_USE Err run_product(const OpCall *c, const RefMatMul *p, const Tensor *a, const Tensor *b,
                         const Tensor *y);

// run_image.c: the model's window and resize parameters as kernel parameters.

RefWindow run_window(const SlidingWindow *w);

// Its parameters for `rank` dimensions.

MUST_USE Err run_resize_params(const OpCall *c, int32_t rank, RefResize *p);

// run_dense.c: applies the activation of a fused operator in place.

MUST_USE Err run_activation(const Node *n, Tensor *y);

// run_attention.c: t as [batch, heads, length, size], or packed: [batch, length, heads * size].

// Rotary embedding with the tables of cosines and sines in inputs `tables` and the one after it.
MUST_USE Err run_rotary_at(const OpCall *c, const Rotary *r, uint32_t tables, const Tensor *ids,
                           Tensor *out);
RefHeads     run_heads(const Tensor *t, bool packed, int64_t heads, int64_t length, int64_t size);
RefAttention run_attention_params(const Attention *a);  // without operands
