// Softmax and normalization over adjacent dimensions.
#include "compile/lower/lower.h"
#include "compile/spec.h"
#include "kernel/normalize.h"
#include "model/infer/infer.h"
#include "model/infer/infer_params.h"

static IrLayer *add_layer(Ir *ir, const Node *n, Normalize r) {
    return lower_add(ir, n, 0, IR_NORMALIZE, NORMALIZE_OPERANDS, &r, sizeof r);
}

bool lower_softmax(Ir *ir, const Node *n) {
    const Tensor *in[1] = {lower_type(ir, n, 0)};
    OpCall        c = {.node = n, .in = in};
    bool          along[TENSOR_MAX_RANK] = {false};
    size_t        outer, count, inner;
    if (!lower_is_float(ir, n, 0) || infer_softmax_axes(&c, along) != ERR_OK) return false;
    if (!lower_collapse(in[0], along, &outer, &count, &inner)) return false;
    NormalizeOp op = n->op == OP_Softmax ? NORMALIZE_SOFTMAX : NORMALIZE_LOG_SOFTMAX;
    add_layer(ir, n, normalize_axis(op, outer, count, inner, 0));
    return true;
}

static bool has_count(const Ir *ir, uint32_t value, size_t n) {
    if (value == IR_NONE) return true;
    const Tensor *t = ir_type(ir, value);
    return t->dtype == DT_F32 && (size_t)tensor_count(t) == n;
}

bool lower_layer_norm(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0);
    int32_t       axis = 0;
    size_t        rows = 1, count = 1;
    if (!lower_is_float(ir, n, 0) || !lower_single_output(n)) return false;
    if (infer_axis(attr_int(n, "axis", -1), x->rank, &axis) != ERR_OK) return false;
    for (int32_t i = 0; i < x->rank; i++) *(i < axis ? &rows : &count) *= (size_t)x->dims[i];
    if (!has_count(ir, lower_in(ir, n, 1), count) || !has_count(ir, lower_in(ir, n, 2), count))
        return false;
    NormalizeOp op = n->op == OP_LayerNormalization ? NORMALIZE_VARIANCE : NORMALIZE_RMS;
    Normalize   r = normalize_axis(op, rows, count, 1, attr_float(n, "epsilon", 1e-5f));
    IrLayer    *l = add_layer(ir, n, r);
    l->in[NORMALIZE_SCALE] = lower_in(ir, n, 1);
    l->in[NORMALIZE_BIAS] = lower_in(ir, n, 2);
    return true;
}

// x + skip (+ bias) as a layer: the node's fourth output, which later residual sums add to.
static uint32_t add_sum(Ir *ir, const Node *n, uint32_t bias) {
    uint32_t x = lower_in(ir, n, 0), skip = lower_in(ir, n, 1);
    Expr     e = {.n_args = x == skip ? 1 : 2, .args = {x, skip}};
    expr_step(&e, (ExprStep){.op = EWISE_ADD, .a = EXPR_ARG(0), .b = EXPR_ARG((int)e.n_args - 1)});
    if (bias != IR_NONE) {
        e.args[e.n_args++] = bias;
        expr_step(&e, (ExprStep){.op = EWISE_ADD, .a = 0, .b = EXPR_ARG((int)e.n_args - 1)});
    }
    IrLayer *l = lower_add(ir, n, 3, IR_ELEMENTWISE, 0, NULL, 0);
    l->expr = e;
    return l->out[0];
}

static bool has_output(const Node *n, uint32_t i) { return i < n->n_out && n->out[i] != NO_VALUE; }

// com.microsoft: normalizes the sum of two tensors.
bool lower_skip_norm(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0), *skip = lower_type(ir, n, 1);
    bool          rms = n->op == OP_MsSkipSimplifiedLayerNorm;
    uint32_t bias = rms ? IR_NONE : lower_in(ir, n, 3), add_bias = lower_in(ir, n, rms ? 3 : 4);
    if (!lower_is_float(ir, n, 0) || has_output(n, 1) || has_output(n, 2) ||
        !tensor_same_shape(x, skip))
        return false;
    size_t count = (size_t)x->dims[x->rank - 1], rows = (size_t)tensor_count(x) / count;
    if (!has_count(ir, lower_in(ir, n, 2), count) || !has_count(ir, bias, count) ||
        !has_count(ir, add_bias, count))
        return false;
    float    epsilon = attr_float(n, "epsilon", 1e-12f);
    uint32_t sum = has_output(n, 3) ? add_sum(ir, n, add_bias) : IR_NONE;
    IrLayer *l = add_layer(
        ir, n, normalize_axis(rms ? NORMALIZE_RMS : NORMALIZE_VARIANCE, rows, count, 1, epsilon));
    if (sum != IR_NONE) {
        l->in[NORMALIZE_X] = sum;
    } else {
        l->in[NORMALIZE_ADD] = lower_in(ir, n, 1);
        l->in[NORMALIZE_ADD_BIAS] = add_bias;
    }
    l->in[NORMALIZE_SCALE] = lower_in(ir, n, 2);
    l->in[NORMALIZE_BIAS] = bias;
    return true;
}

bool lower_instance_norm(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0);
    if (!lower_is_float(ir, n, 0) || n->version < 6 || x->rank < 3) return false;
    size_t images = (size_t)x->dims[0], c = (size_t)x->dims[1];
    size_t pixels = (size_t)tensor_count(x) / images / c;
    if (!has_count(ir, lower_in(ir, n, 1), c) || !has_count(ir, lower_in(ir, n, 2), c))
        return false;
    IrLayer *l =
        add_layer(ir, n, normalize_instance(images, c, pixels, attr_float(n, "epsilon", 1e-5f)));
    l->in[NORMALIZE_SCALE] = lower_in(ir, n, 1);
    l->in[NORMALIZE_BIAS] = lower_in(ir, n, 2);
    return true;
}
