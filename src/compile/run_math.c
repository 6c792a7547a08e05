#include "compile/run.h"
#include "kernel/ref_unary.h"

static RefUnary unary_of(OpId op) {
    switch (op) {
    case OP_Relu:
        return REF_RELU;
    default:
        return REF_UNARY_COUNT;
    }
}

Err run_unary(const OpCall *c, Tensor *out) {
    ref_unary(unary_of(c->node->op), c->in[0], &out[0]);
    return ERR_OK;
}
