// call_run: infers and evaluates an operator call that a test built, with memory for its outputs.
#pragma once

#include "compile/interp/run_ops.h"
#include "tests/model/call.h"

static inline Err call_run(Call *c) {
    TRY(call_infer(c));
    for (uint32_t i = 0; i < c->node.n_out; i++) {
        size_t bytes = 0;
        TRY(tensor_measure(&c->out[i], &bytes));
        c->out[i].data = arena_alloc(&c->arena, 1, bytes, TENSOR_ALIGN);
    }
    return run_op(c->node.op)(&c->op, c->out);
}
