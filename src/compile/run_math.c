#include "base/number.h"
#include "compile/run.h"
#include "kernel/ref_binary.h"
#include "kernel/ref_dropout.h"
#include "kernel/ref_unary.h"

// The function of an operator, its parameters' attributes and their defaults.
typedef struct UnaryRow {
    const char *a_name, *b_name;
    RefUnary    f;
    float       a, b;
} UnaryRow;

static const UnaryRow unary_rows[OP_COUNT] = {
#define U(op, f) [OP_##op] = {NULL, NULL, REF_##f, 0, 0}
    U(Abs, ABS),
    U(Acos, ACOS),
    U(Acosh, ACOSH),
    U(Asin, ASIN),
    U(Asinh, ASINH),
    U(Atan, ATAN),
    U(Atanh, ATANH),
    U(BitwiseNot, BIT_NOT),
    U(Ceil, CEIL),
    U(Cos, COS),
    U(Cosh, COSH),
    U(Erf, ERF),
    U(Exp, EXP),
    U(Floor, FLOOR),
    U(Gelu, GELU),
    U(Log, LOG),
    U(Mish, MISH),
    U(MsGelu, GELU),
    U(Neg, NEG),
    U(Not, NOT),
    U(Reciprocal, RECIPROCAL),
    U(Relu, RELU),
    U(Round, ROUND),
    U(Sigmoid, SIGMOID),
    U(Sign, SIGN),
    U(Sin, SIN),
    U(Sinh, SINH),
    U(Softplus, SOFTPLUS),
    U(Softsign, SOFTSIGN),
    U(Sqrt, SQRT),
    U(Tan, TAN),
    U(Tanh, TANH),
#undef U
    [OP_Celu] = {"alpha", NULL, REF_CELU, 1, 0},
    [OP_Elu] = {"alpha", NULL, REF_ELU, 1, 0},
    [OP_HardSigmoid] = {"alpha", "beta", REF_HARD_SIGMOID, 0.2f, 0.5f},
    [OP_HardSwish] = {NULL, NULL, REF_HARD_SWISH, 0, 0.5f},
    [OP_LeakyRelu] = {"alpha", NULL, REF_LEAKY_RELU, 0.01f, 0},
    [OP_MsQuickGelu] = {"alpha", NULL, REF_SWISH, 1.702f, 0},
    [OP_Selu] = {"alpha", "gamma", REF_SELU, 1.67326319f, 1.05070102f},
    [OP_Shrink] = {"lambd", "bias", REF_SHRINK, 0.5f, 0},
    [OP_Swish] = {"alpha", NULL, REF_SWISH, 1, 0},
    [OP_ThresholdedRelu] = {"alpha", NULL, REF_THRESHOLDED_RELU, 1, 0},
};

static const float gelu_cubic = 0.044715f;

Err run_unary(const OpCall *c, Tensor *out) {
    const Node *n = c->node;
    UnaryRow    r = unary_rows[n->op];
    if (n->op == OP_Gelu && attr_is(n, "approximate", "tanh", false))
        r = (UnaryRow){.f = REF_GELU_TANH, .a = gelu_cubic};
    if (n->op == OP_Selu && n->version < 6) r.a = 1.6732f, r.b = 1.0507f;
    if (r.a_name != NULL) r.a = attr_float(n, r.a_name, r.a);
    if (r.b_name != NULL) r.b = attr_float(n, r.b_name, r.b);
    ref_unary(r.f, r.a, r.b, c->in[0], &out[0]);
    return ERR_OK;
}

Err run_bias_gelu(const OpCall *c, Tensor *out) {
    const Tensor *bias = infer_in(c, 1), *x = c->in[0];
    if (bias != NULL) {
        ref_binary(REF_ADD, x, bias, &out[0]);
        x = &out[0];
    }
    RefUnary f = c->node->op == OP_MsFastGelu ? REF_GELU_TANH : REF_GELU;
    ref_unary(f, gelu_cubic, 0, x, &out[0]);
    return ERR_OK;
}

Err run_detect(const OpCall *c, Tensor *out) {
    const Node *n = c->node;
    if (n->op == OP_IsNaN)
        ref_is_nan(c->in[0], &out[0]);
    else
        ref_is_inf(attr_int(n, "detect_negative", 1) != 0, attr_int(n, "detect_positive", 1) != 0,
                   c->in[0], &out[0]);
    return ERR_OK;
}

// A bound of Clip: an input since operator set 11, an attribute before. NULL: unbounded.
static const Tensor *bound(const OpCall *c, uint32_t input, const char *name, Tensor *room) {
    if (c->node->version >= 11) return infer_in(c, input);
    if (!attr_has(c->node, name)) return NULL;
    number_set(room, 0, (double)attr_float(c->node, name, 0));
    return room;
}

Err run_clip(const OpCall *c, Tensor *out) {
    uint64_t      low_room = 0, high_room = 0;
    const DType   t = c->in[0]->dtype;
    Tensor        low_attr = tensor_of(t, 0, NULL, &low_room);
    Tensor        high_attr = tensor_of(t, 0, NULL, &high_room);
    const Tensor *low = bound(c, 1, "min", &low_attr), *high = bound(c, 2, "max", &high_attr);
    TRY(run_same(c, out));
    if (low != NULL) ref_binary(REF_MAX, &out[0], low, &out[0]);
    if (high != NULL) ref_binary(REF_MIN, &out[0], high, &out[0]);
    return ERR_OK;
}

// Only operator sets from 12 on train, and only when told to. A missing seed is 0, so that a run
// can be repeated.
Err run_dropout(const OpCall *c, Tensor *out) {
    const Tensor *ratio_in = infer_in(c, 1), *mode = infer_in(c, 2);
    double        ratio = 0;
    if (mode != NULL && number_f64(mode, 0) != 0)
        ratio = ratio_in != NULL ? number_f64(ratio_in, 0) : 0.5;
    if (!(ratio >= 0 && ratio < 1)) return err_set(ERR_INVALID, "ratio %g is not in [0, 1)", ratio);
    uint32_t seed = (uint32_t)attr_int(c->node, "seed", 0);
    ref_dropout(ratio, seed, c->in[0], &out[0], c->node->n_out > 1 ? &out[1] : NULL);
    return ERR_OK;
}
