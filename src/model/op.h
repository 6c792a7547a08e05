// Op: every operator the program knows, with what it takes, gives and how its shapes follow.
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

#define VARIADIC UINT16_MAX

// What an operator sees of one call. Every input's type and shape is known; its data is NULL when
// the numbers are not known yet (inference ahead of a run).
typedef struct OpCall {
    const Node          *node;
    const Tensor *const *in;       // [node->n_in]; NULL where an optional input is left out
    Arena               *scratch;  // forgotten after the call; use arena_try
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

bool op_is_control_flow(OpId op);      // its bodies are graphs: If, Loop, Scan, SequenceMap
Err  op_failed(const Node *n, Err e);  // puts the node's name and operator before the reason

// Fails when the node has too few or many inputs or outputs, or an attribute of the wrong kind.
MUST_USE Err op_check(const Node *n);
