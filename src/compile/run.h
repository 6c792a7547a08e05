// Run: computes one operator on the reference kernels. Inference accepted the call before.
#pragma once

#include "model/attr.h"
#include "model/infer.h"
#include "model/op.h"

// out[node->n_out] has its final type and shape and room for the numbers (TENSOR_ALIGN). The data
// of every input is there. Fails only where the numbers themselves are wrong, as an index can be.
typedef Err RunFn(const OpCall *c, Tensor *out);

#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family) RunFn run_##family;
#include "model/op.def"
#undef XD

RunFn *run_find(OpId op);

// How long a sequence, an optional or a loop's stack may keep memory: the call's keep arena.
MUST_USE Err run_keep(const OpCall *c, const Tensor *t, Tensor *copy);  // deep copy
