// Element-wise operators become expressions of one or a few steps; fusion merges them.
#include <math.h>

#include "base/tensor.h"
#include "compile/lower/lower.h"
#include "model/infer/infer_params.h"

static uint32_t add_arg(Expr *e, uint32_t value) {
    for (uint32_t i = 0; i < e->n_args; i++)
        if (e->args[i] == value) return i;
    e->args[e->n_args] = value;
    return e->n_args++;
}

static bool add_elementwise(Ir *ir, const Node *n, const Expr *e) {
    IrLayer *l = lower_add(ir, n, 0, IR_ELEMENTWISE, 0, NULL, 0);
    l->expr = *e;
    expr_simplify(&l->expr);
    return true;
}

static bool add_unary(Ir *ir, const Node *n, ExprStep s) {
    Expr e = {.n_args = 1, .args = {lower_in(ir, n, 0)}};
    s.a = EXPR_ARG(0);
    expr_step(&e, s);
    return add_elementwise(ir, n, &e);
}

static bool unary_step(const Node *n, ExprStep *s) {
#define ONE(o, c)                                                                                  \
    case OP_##o: *s = (ExprStep){.op = EWISE_##c}; return true
    switch (n->op) {
        ONE(Abs, ABS);
        ONE(Ceil, CEIL);
        ONE(Erf, ERF);
        ONE(Exp, EXP);
        ONE(Floor, FLOOR);
        ONE(HardSwish, HSWISH);
        ONE(Log, LOG);
        ONE(Mish, MISH);
        ONE(Neg, NEG);
        ONE(Reciprocal, RECIP);
        ONE(Round, ROUND);
        ONE(Sigmoid, SIGMOID);
        ONE(Softplus, SOFTPLUS);
        ONE(Sqrt, SQRT);
        ONE(Tanh, TANH);
        ONE(MsGelu, GELU);
        ONE(Sign, SIGN);
        ONE(Softsign, SOFTSIGN);
        ONE(Sin, SIN);
        ONE(Cos, COS);
        ONE(Tan, TAN);
        ONE(Asin, ASIN);
        ONE(Acos, ACOS);
        ONE(Atan, ATAN);
        ONE(Sinh, SINH);
        ONE(Cosh, COSH);
        ONE(Asinh, ASINH);
        ONE(Acosh, ACOSH);
        ONE(Atanh, ATANH);
#undef ONE
    case OP_Relu: *s = (ExprStep){.op = EWISE_CLIP, .p = 0, .q = INFINITY}; return true;
    case OP_Elu: *s = (ExprStep){.op = EWISE_ELU, .p = attr_float(n, "alpha", 1.0f)}; return true;
    case OP_Selu:
        *s = (ExprStep){
            .op = EWISE_SELU,
            .p = attr_float(n, "alpha", n->version < 6 ? 1.6732f : 1.67326319217681885f),
            .q = attr_float(n, "gamma", n->version < 6 ? 1.0507f : 1.05070102214813232f)};
        return true;
    case OP_LeakyRelu:
        *s = (ExprStep){.op = EWISE_LEAKY, .p = attr_float(n, "alpha", 0.01f)};
        return true;
    case OP_Celu: *s = (ExprStep){.op = EWISE_CELU, .p = attr_float(n, "alpha", 1)}; return true;
    case OP_ThresholdedRelu:
        *s = (ExprStep){.op = EWISE_ABOVE, .p = attr_float(n, "alpha", 1)};
        return true;
    case OP_Shrink:
        *s = (ExprStep){
            .op = EWISE_SHRINK, .p = attr_float(n, "lambd", 0.5f), .q = attr_float(n, "bias", 0)};
        return true;
    case OP_HardSigmoid:
        *s = (ExprStep){.op = EWISE_HSIGMOID,
                        .p = attr_float(n, "alpha", 0.2f),
                        .q = attr_float(n, "beta", 0.5f)};
        return true;
    case OP_Gelu:
        *s = (ExprStep){.op = attr_is(n, "approximate", "tanh", false) ? EWISE_GELU_TANH
                                                                       : EWISE_GELU};
        return true;
    case OP_MsFastGelu:
        *s = (ExprStep){.op = EWISE_GELU_TANH};
        return lower_single_output(n) && (n->n_in < 2 || n->in[1] == NO_VALUE);
    default: return false;
    }
}

bool lower_unary(Ir *ir, const Node *n) {
    ExprStep s = {0};
    return lower_is_float(ir, n, 0) && unary_step(n, &s) && add_unary(ir, n, s);
}

// x * sigmoid(alpha * x).
bool lower_swish(Ir *ir, const Node *n) {
    Expr  e = {.n_args = 1, .args = {lower_in(ir, n, 0)}};
    float alpha = attr_float(n, "alpha", n->op == OP_MsQuickGelu ? 1.702f : 1);
    if (!lower_is_float(ir, n, 0)) return false;
    expr_step(&e, (ExprStep){.op = EWISE_AFFINE, .a = EXPR_ARG(0), .p = alpha});
    expr_step(&e, (ExprStep){.op = EWISE_SIGMOID, .a = 0});
    expr_step(&e, (ExprStep){.op = EWISE_MUL, .a = EXPR_ARG(0), .b = 1});
    return add_elementwise(ir, n, &e);
}

// A bound of Clip: an attribute before operator set 11, then an input. False: not constant.
static bool clip_bound(const Ir *ir, const Node *n, uint32_t i, const char *name, float otherwise,
                       float *out) {
    *out = n->version < 11 ? attr_float(n, name, otherwise) : otherwise;
    if (n->version < 11 || lower_in(ir, n, i) == IR_NONE) return true;
    const float *x = lower_scalar(ir, n, i);
    if (x != NULL) *out = *x;
    return x != NULL;
}

bool lower_clip(Ir *ir, const Node *n) {
    ExprStep s = {.op = EWISE_CLIP};
    if (!lower_is_float(ir, n, 0)) return false;
    if (!clip_bound(ir, n, 1, "min", -INFINITY, &s.p)) return false;
    if (!clip_bound(ir, n, 2, "max", INFINITY, &s.q)) return false;
    return s.p <= s.q && add_unary(ir, n, s);
}

static bool binary_op(OpId op, ElementwiseOp *out) {
    switch (op) {
    case OP_Add:
    case OP_Sum: *out = EWISE_ADD; return true;
    case OP_Sub: *out = EWISE_SUB; return true;
    case OP_Mul: *out = EWISE_MUL; return true;
    case OP_Div: *out = EWISE_DIV; return true;
    case OP_Pow: *out = EWISE_POW; return true;
    case OP_PRelu: *out = EWISE_PRELU; return true;
    case OP_Max: *out = EWISE_MAX; return true;
    case OP_Min: *out = EWISE_MIN; return true;
    default: return false;
    }
}

// op(x, c) for a constant c, as one step.
static bool right_scalar_step(ElementwiseOp op, float c, ExprStep *s) {
    switch (op) {
    case EWISE_ADD: *s = (ExprStep){.op = EWISE_AFFINE, .p = 1, .q = c}; return true;
    case EWISE_SUB: *s = (ExprStep){.op = EWISE_AFFINE, .p = 1, .q = -c}; return true;
    case EWISE_MUL: *s = (ExprStep){.op = EWISE_AFFINE, .p = c}; return true;
    case EWISE_DIV: *s = (ExprStep){.op = EWISE_AFFINE, .p = 1 / c}; return isnormal(1 / c);
    case EWISE_MAX: *s = (ExprStep){.op = EWISE_CLIP, .p = c, .q = INFINITY}; return !isnan(c);
    case EWISE_MIN: *s = (ExprStep){.op = EWISE_CLIP, .p = -INFINITY, .q = c}; return !isnan(c);
    case EWISE_POW:
        if (c == 3) *s = (ExprStep){.op = EWISE_CUBE};
        if (c == 2) *s = (ExprStep){.op = EWISE_SQUARE};
        if (c == 0.5f) *s = (ExprStep){.op = EWISE_SQRT};
        if (c == -1) *s = (ExprStep){.op = EWISE_RECIP};
        return c == 3 || c == 2 || c == 0.5f || c == -1;
    case EWISE_PRELU: *s = (ExprStep){.op = EWISE_LEAKY, .p = c}; return true;
    default: return false;
    }
}

static bool left_scalar_step(ElementwiseOp op, float c, ExprStep *s) {
    if (op == EWISE_SUB) *s = (ExprStep){.op = EWISE_AFFINE, .p = -1, .q = c};
    if (op == EWISE_DIV && c == 1) *s = (ExprStep){.op = EWISE_RECIP};
    if (op == EWISE_SUB || (op == EWISE_DIV && c == 1)) return true;
    return op != EWISE_POW && op != EWISE_DIV && op != EWISE_PRELU && right_scalar_step(op, c, s);
}

static bool is_finite(float x) { return x - x == 0; }

// Operand i, reshaped where old operator sets align it by an `axis` attribute.
static uint32_t broadcast_operand(Ir *ir, const Node *n, uint32_t i) {
    uint32_t v = lower_in(ir, n, i);
    if (i != 1 || n->version >= 9) return v;
    const Tensor *in[2] = {lower_type(ir, n, 0), lower_type(ir, n, 1)};
    OpCall        c = {.node = n, .in = in};
    Tensor        b;
    if (n->op == OP_Max || n->op == OP_Min || n->op == OP_Sum) return v;
    if (infer_second_operand(&c, &b) != ERR_OK || tensor_same_shape(&b, in[1])) return v;
    return lower_reshaped(ir, n, v, b);
}

static bool all_float(const Ir *ir, const Node *n) {
    for (uint32_t i = 0; i < n->n_in; i++)
        if (!lower_is_float(ir, n, i)) return false;
    return n->n_in >= 1 && n->n_in <= EWISE_MAX_ARGS;
}

bool lower_binary(Ir *ir, const Node *n) {
    ElementwiseOp op = EWISE_OPS;
    if (!all_float(ir, n) || !binary_op(n->op, &op)) return false;
    Expr          e = {0};
    ExprStep      s = {0};
    const float  *left = lower_scalar(ir, n, 0), *right = lower_scalar(ir, n, 1);
    const Tensor *out = &ir->shaped->values[n->out[0]];
    if (n->n_in == 2 && right != NULL && is_finite(*right) &&
        tensor_same_shape(lower_type(ir, n, 0), out) && right_scalar_step(op, *right, &s))
        return add_unary(ir, n, s);
    if (n->n_in == 2 && left != NULL && is_finite(*left) &&
        tensor_same_shape(lower_type(ir, n, 1), out) && left_scalar_step(op, *left, &s)) {
        e = (Expr){.n_args = 1, .args = {lower_in(ir, n, 1)}};
        s.a = EXPR_ARG(0);
        expr_step(&e, s);
        return add_elementwise(ir, n, &e);
    }
    int8_t so_far = EXPR_ARG(add_arg(&e, lower_in(ir, n, 0)));
    if (n->n_in == 1) expr_step(&e, (ExprStep){.op = EWISE_COPY, .a = so_far});
    for (uint32_t i = 1; i < n->n_in; i++) {
        int8_t b = EXPR_ARG(add_arg(&e, broadcast_operand(ir, n, i)));
        expr_step(&e, (ExprStep){.op = (uint8_t)op, .a = so_far, .b = b});
        so_far = expr_result(&e);
    }
    return add_elementwise(ir, n, &e);
}

// What the layer of a computed condition runs. Steps keep the node; its values are those of the
// layer.
static const uint32_t cast_values[1];
static const Attr     cast_to = {.name = "to", .kind = ATTR_INT, .n = 1, .v.i = DT_F32};
static const Node     cast_node = {.name = "condition",
                                   .op = OP_Cast,
                                   .version = 13,
                                   .n_in = 1,
                                   .n_out = 1,
                                   .n_attr = 1,
                                   .in = cast_values,
                                   .out = cast_values,
                                   .attrs = &cast_to};

// The condition of Where as floats, 0 for false.
static uint32_t condition(Ir *ir, const Node *n) {
    uint32_t       c = lower_in(ir, n, 0);
    Tensor         t = *ir_type(ir, c);
    const uint8_t *from = t.data;
    t.dtype = DT_F32, t.data = NULL;
    if (ir_is_const(ir, c)) {
        if (tensor_alloc(&t, ir->arena) != ERR_OK) return IR_NONE;
        for (int64_t i = 0; i < tensor_count(&t); i++) ((float *)t.data)[i] = from[i] != 0;
        return ir_const(ir, n->name, t);
    }
    uint32_t out = ir_computed(ir, n->name, t);
    IrLayer *l = ir_layer(ir, IR_REF, &cast_node, 1, 1);
    l->in[0] = c;
    l->out[0] = out;
    return out;
}

// One step if an alternative is one number; else the sum of both, each 0 where the other counts.
bool lower_where(Ir *ir, const Node *n) {
    if (!lower_is_float(ir, n, 1) || !lower_is_float(ir, n, 2)) return false;
    const float *yes = lower_scalar(ir, n, 1), *no = lower_scalar(ir, n, 2);
    uint32_t     c = condition(ir, n);
    Expr         e = {0};
    if (c == IR_NONE) return false;
    int8_t   of = EXPR_ARG(add_arg(&e, lower_in(ir, n, no != NULL || yes == NULL ? 1 : 2)));
    ExprStep s = {.op = EWISE_WHERE, .a = of, .b = EXPR_ARG(add_arg(&e, c))};
    if (no != NULL) s.p = *no;
    if (no == NULL && yes != NULL) s.op = EWISE_UNLESS, s.p = *yes;
    expr_step(&e, s);
    if (no == NULL && yes == NULL) {
        s.op = EWISE_UNLESS, s.a = EXPR_ARG(add_arg(&e, lower_in(ir, n, 2)));
        expr_step(&e, s);
        expr_step(&e, (ExprStep){.op = EWISE_ADD, .a = 0, .b = 1});
    }
    return add_elementwise(ir, n, &e);
}

static bool is_short_float(DType t) { return t == DT_F32 || t == DT_F16 || t == DT_BF16; }

// Between floats of at most 32 bits: layers compute in float, and the result is rounded.
bool lower_cast(Ir *ir, const Node *n) {
    DType from = ir->shaped->values[n->in[0]].dtype, to = ir->shaped->values[n->out[0]].dtype;
    if (!is_short_float(from) || !is_short_float(to)) return false;
    if (from == to || to == DT_F32) return lower_view(ir, n);
    return add_unary(ir, n, (ExprStep){.op = EWISE_COPY});
}

// With constant statistics: a scale and a shift per channel.
bool lower_batch_norm(Ir *ir, const Node *n) {
    const Tensor *x = lower_type(ir, n, 0);
    if (!lower_is_float(ir, n, 0) || !lower_single_output(n) || infer_batch_norm_trains(n))
        return false;
    if (x->rank < 2 || (n->version < 9 && attr_int(n, "spatial", 1) == 0)) return false;
    for (uint32_t i = 1; i < 5; i++)
        if (ir_floats(ir, lower_in(ir, n, i)) == NULL) return false;
    Tensor t = {.dtype = DT_F32, .rank = x->rank - 1, .dims = {x->dims[1], 1, 1, 1, 1, 1, 1, 1}};
    Tensor mul = t, add = t;
    if (tensor_alloc(&mul, ir->arena) != ERR_OK || tensor_alloc(&add, ir->arena) != ERR_OK)
        return false;
    double epsilon = (double)attr_float(n, "epsilon", 1e-5f);
    for (int64_t i = 0; i < x->dims[1]; i++) {
        double scale = tensor_get_f64(lower_type(ir, n, 1), i) /
                       sqrt(tensor_get_f64(lower_type(ir, n, 4), i) + epsilon);
        tensor_set(&mul, i, scale);
        tensor_set(&add, i,
                   tensor_get_f64(lower_type(ir, n, 2), i) -
                       tensor_get_f64(lower_type(ir, n, 3), i) * scale);
    }
    Expr e = {.n_args = 3,
              .args = {lower_in(ir, n, 0), ir_const(ir, n->name, mul), ir_const(ir, n->name, add)}};
    expr_step(&e, (ExprStep){.op = EWISE_MUL, .a = EXPR_ARG(0), .b = EXPR_ARG(1)});
    expr_step(&e, (ExprStep){.op = EWISE_ADD, .a = 0, .b = EXPR_ARG(2)});
    return add_elementwise(ir, n, &e);
}
