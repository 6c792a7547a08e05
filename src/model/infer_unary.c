#include <string.h>

#include "model/infer.h"

static uint64_t types_of(OpId op) {
    switch (op) {
    case OP_Abs:
    case OP_Sign:
    case OP_Erf:
    case OP_Shrink: return TYPES_NUMBER;
    case OP_Neg:
    case OP_Relu: return TYPES_FLOAT | TYPES_SIGNED;
    case OP_Not: return dtype_bit(DT_BOOL);
    case OP_BitwiseNot: return TYPES_INT;
    default: return TYPES_FLOAT;
    }
}

Err infer_unary(const OpCall *c, Tensor *out) {
    TRY(infer_need(c->in[0], types_of(c->node->op), "X"));
    const char *how = attr_str(c->node, "approximate", "none");
    if (c->node->op == OP_Gelu && strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
        return err_set(ERR_INVALID, "approximate is neither 'none' nor 'tanh'");
    return infer_same(c, out);
}

Err infer_detect(const OpCall *c, Tensor *out) {
    TRY(infer_need(c->in[0], TYPES_FLOAT, "X"));
    TRY(infer_same(c, out));
    out[0].dtype = DT_BOOL;
    return ERR_OK;
}

// An optional input of one element.
static Err need_one(const OpCall *c, uint32_t i, uint64_t types, const char *what) {
    const Tensor *t = infer_in(c, i);
    if (t == NULL) return ERR_OK;
    TRY(infer_need(t, types, what));
    if (tensor_count(t) != 1) return err_set(ERR_INVALID, "input %s is not one number", what);
    return ERR_OK;
}

Err infer_clip(const OpCall *c, Tensor *out) {
    TRY(infer_need(c->in[0], TYPES_NUMBER, "input"));
    TRY(need_one(c, 1, dtype_bit(c->in[0]->dtype), "min"));
    TRY(need_one(c, 2, dtype_bit(c->in[0]->dtype), "max"));
    return infer_same(c, out);
}

Err infer_dropout(const OpCall *c, Tensor *out) {
    TRY(infer_need(c->in[0], TYPES_FLOAT, "data"));
    TRY(need_one(c, 1, TYPES_FLOAT, "ratio"));
    TRY(need_one(c, 2, dtype_bit(DT_BOOL), "training_mode"));
    TRY(infer_same(c, out));
    if (c->node->n_out < 2) return ERR_OK;
    out[1] = out[0];
    if (c->node->version >= 10) out[1].dtype = DT_BOOL;
    return ERR_OK;
}
