// A value that is quantised and at once dequantised by the same step is rounded, nothing more: that
// is an element-wise step, and the layers around it stay in floating point.
#include "base/number.h"
#include "compile/lower.h"

static const Node *quantizer_of(const Ir *ir, const Node *n) {
    const Graph *g = ir->special->graph;
    uint32_t     p = g->values[n->in[0]].producer;
    if (p == NO_NODE || g->nodes[p].op != OP_QuantizeLinear) return NULL;
    return &g->nodes[p];
}

static bool same_number(const Ir *ir, const Node *a, const Node *b, uint32_t i, double *out) {
    const Tensor *x = lower_type(ir, a, i), *y = lower_type(ir, b, i);
    if (x == NULL || y == NULL) return x == y;
    if (x->data == NULL || y->data == NULL || tensor_count(x) != 1 || tensor_count(y) != 1)
        return false;
    *out = number_f64(x, 0);
    return *out == number_f64(y, 0);
}

bool lower_dequantize(Ir *ir, const Node *n) {
    const Node *q = quantizer_of(ir, n);
    double      scale = 0, zero = 0;
    if (q == NULL || !lower_is_float(ir, q, 0) || !lower_is_float(ir, n, 1)) return false;
    if (!same_number(ir, q, n, 1, &scale) || !same_number(ir, q, n, 2, &zero)) return false;
    DType t = lower_type(ir, n, 0)->dtype;
    if ((t != DT_U8 && t != DT_I8) || ir->special->values[n->out[0]].dtype != DT_F32) return false;
    Expr e = {.n_args = 1, .args = {lower_in(ir, q, 0)}};
    expr_step(&e, (ExprStep){.op = CHAIN_QDQ,
                             .a = EXPR_ARG(0),
                             .p = (float)scale,
                             .q = (float)zero,
                             .lo = t == DT_U8 ? 0.0f : -128.0f,
                             .hi = t == DT_U8 ? 255.0f : 127.0f});
    uint32_t out = lower_out(ir, n, 0);
    IrLayer *l = ir_layer(ir, IR_CHAIN, n, 0, 1);
    l->out[0] = out;
    l->expr = e;
    return true;
}
