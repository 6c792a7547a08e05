// Op: the table of supported operators: arity, first operator set, shape inference.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/tensor.h"

typedef struct Node Node;

typedef enum OpId {
#define XD(id, name, domain, since, in_min, in_max, out_min, out_max, family) OP_##id,
#include "model/op.def"
#undef XD
    OP_COUNT
} OpId;

#define VARIADIC UINT16_MAX  // no upper bound on inputs or outputs

// One invocation of an operator. Type and shape of every input are known; its data is NULL while it
// is not computed yet (inference before a run).
typedef struct OpCall {
    const Node          *node;
    const Tensor *const *in;       // [node->n_in]; NULL where an optional input is absent
    Arena               *scratch;  // rewound after the call; use arena_try
    Arena               *keep;     // lives as long as the outputs; NULL during inference
} OpCall;

// Fills dtype, rank and dims of out[node->n_out] and checks everything the kernel relies on. Where
// a shape depends on data that is NULL it sets dtype (or DT_NONE) and rank RANK_UNKNOWN.
typedef Err InferFn(const OpCall *c, Tensor *out);

typedef struct OpInfo {
    const char *name, *domain;
    uint16_t    since;  // first operator set that has it
    uint16_t    in_min, in_max, out_min, out_max;
    InferFn    *infer;
} OpInfo;

const OpInfo *op_info(OpId op);
OpId          op_find(const char *domain, const char *name);  // OP_COUNT when unknown

bool op_is_control_flow(OpId op);      // has graphs as bodies: If, Loop, Scan, SequenceMap
Err  op_failed(const Node *n, Err e);  // prefixes the error with the node's name and operator

// Fails if the number of inputs or outputs is out of range or an attribute has the wrong kind.
MUST_USE Err op_check(const Node *n);
