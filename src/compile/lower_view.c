// Operators that leave the numbers alone and give them another shape.
#include "compile/lower.h"

uint32_t lower_reshaped(Ir *ir, const Node *n, uint32_t value, Tensor type) {
    IrValue v = ir->values[value];
    if (ir_is_const(ir, value)) {
        type.data = v.type.data;
        return ir_const(ir, v.name, type);
    }
    type.data = NULL;
    v = (IrValue){
        .type = type, .name = v.name, .maker = IR_NONE, .input = IR_NONE, .twin = IR_NONE};
    uint32_t out = ir_value(ir, v);
    IrLayer *l = ir_layer(ir, IR_VIEW, n, 1, 1);
    l->in[0] = value;
    l->out[0] = out;
    return out;
}

// Dropout keeps everything unless it is told to train.
static bool drops(const Ir *ir, const Node *n) {
    if (n->version < 7) return attr_int(n, "is_test", 0) == 0;
    uint32_t train = lower_in(ir, n, 2);
    if (train == IR_NONE) return false;
    return !ir_is_const(ir, train) || *(const unsigned char *)ir_type(ir, train)->data != 0;
}

bool lower_view(Ir *ir, const Node *n) {
    if (!lower_only_first(n) || (n->op == OP_Dropout && drops(ir, n))) return false;
    uint32_t in = lower_in(ir, n, 0), out = lower_out(ir, n, 0);
    IrLayer *l = ir_layer(ir, IR_VIEW, n, 1, 1);
    l->in[0] = in;
    l->out[0] = out;
    return true;
}

bool lower_concat(Ir *ir, const Node *n) {
    const Tensor *first = lower_type(ir, n, 0);
    if (first->dtype == DT_STR || n->version < 4) return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (lower_in(ir, n, i) == IR_NONE) return false;
    uint32_t out = lower_out(ir, n, 0);
    IrLayer *l = ir_layer(ir, IR_CONCAT, n, n->n_in, 1);
    for (uint32_t i = 0; i < n->n_in; i++) l->in[i] = lower_in(ir, n, i);
    l->out[0] = out;
    return true;
}
