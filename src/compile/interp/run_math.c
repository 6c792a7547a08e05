// Element-wise, random and signal operators.
#include <string.h>

#include "base/tensor.h"
#include "base/work_stop.h"
#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_cast.h"
#include "kernel/ref/ref_elementwise.h"
#include "kernel/ref/ref_feature.h"
#include "kernel/ref/ref_random.h"
#include "model/infer/infer_params.h"

// The function of an operator, and names and defaults of its attributes.
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
    const Tensor *bias = infer_input(c, 1), *x = c->in[0];
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

// A bound of Clip: an input since operator set 11, an attribute before. NULL: none.
static const Tensor *bound(const OpCall *c, uint32_t input, const char *name, Tensor *room) {
    if (c->node->version >= 11) return infer_input(c, input);
    if (!attr_has(c->node, name)) return NULL;
    tensor_set(room, 0, (double)attr_float(c->node, name, 0));
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

// Drops only in training mode, which exists since operator set 12. A missing seed is 0: runs are
// repeatable.
Err run_dropout(const OpCall *c, Tensor *out) {
    const Tensor *ratio_in = infer_input(c, 1), *mode = infer_input(c, 2);
    double        ratio = 0;
    if (mode != NULL && tensor_get_f64(mode, 0) != 0)
        ratio = ratio_in != NULL ? tensor_get_f64(ratio_in, 0) : 0.5;
    if (!(ratio >= 0 && ratio < 1)) return err_set(ERR_INVALID, "ratio %g is not in [0, 1)", ratio);
    uint32_t seed = (uint32_t)attr_int(c->node, "seed", 0);
    ref_dropout(ratio, seed, c->in[0], &out[0], c->node->n_out > 1 ? &out[1] : NULL);
    return ERR_OK;
}

static RefBinary function_of(const Node *n) {
    switch (n->op) {
    case OP_Add:
    case OP_Sum:
    case OP_Mean: return REF_ADD;
    case OP_Sub: return REF_SUB;
    case OP_Mul: return REF_MUL;
    case OP_Div: return REF_DIV;
    case OP_Pow: return REF_POW;
    case OP_PRelu: return REF_PRELU;
    case OP_Max: return REF_MAX;
    case OP_Min: return REF_MIN;
    case OP_And:
    case OP_BitwiseAnd: return REF_AND;
    case OP_Or:
    case OP_BitwiseOr: return REF_OR;
    case OP_Xor:
    case OP_BitwiseXor: return REF_XOR;
    case OP_Equal: return REF_EQUAL;
    case OP_Greater: return REF_GREATER;
    case OP_GreaterOrEqual: return REF_GREATER_EQ;
    case OP_Less: return REF_LESS;
    case OP_LessOrEqual: return REF_LESS_EQ;
    case OP_Mod: return attr_int(n, "fmod", 0) != 0 ? REF_FMOD : REF_MOD;
    case OP_BitShift: return attr_is(n, "direction", "LEFT", false) ? REF_SHL : REF_SHR;
    default: return REF_BINARY_COUNT;
    }
}

Err run_binary(const OpCall *c, Tensor *out) {
    Tensor b;
    TRY(infer_second_operand(c, &b));
    if (b.dtype == DT_STR)
        ref_equal_str(c->in[0], &b, &out[0]);
    else
        ref_binary(function_of(c->node), c->in[0], &b, &out[0]);
    return ERR_OK;
}

// A scalar of type t, stored in *room.
static Tensor scalar(DType t, double v, uint64_t *room) {
    Tensor s = tensor_of(t, 0, NULL, room);
    tensor_set(&s, 0, v);
    return s;
}

Err run_variadic(const OpCall *c, Tensor *out) {
    const RefBinary f = function_of(c->node);
    const uint32_t  n = c->node->n_in;
    const Tensor   *so_far = c->in[0];
    uint64_t        room = 0;
    if (n == 1) return run_same(c, out);
    for (uint32_t i = 1; i < n; i++) {
        ref_binary(f, so_far, c->in[i], &out[0]);
        so_far = &out[0];
    }
    if (c->node->op == OP_Mean) {
        Tensor count = scalar(out[0].dtype, n, &room);
        ref_binary(REF_DIV, &out[0], &count, &out[0]);
    }
    return ERR_OK;
}

Err run_where(const OpCall *c, Tensor *out) {
    ref_where(c->in[0], c->in[1], c->in[2], &out[0]);
    return ERR_OK;
}

static Err numbers_to_text(const OpCall *c, Tensor *out) {
    Str *to = out[0].data;
    for (int64_t i = 0; i < tensor_count(&out[0]) && !work_stopped(); i++) {
        char   text[REF_CAST_TEXT];
        size_t n = ref_cast_print(c->in[0], i, text);
        char  *copy = arena_try(c->keep, 1, n, 1);
        if (copy == NULL) return err_set(ERR_LIMIT, "no memory for the text of a number");
        memcpy(copy, text, n);
        to[i] = (Str){copy, n};
    }
    return ERR_OK;
}

Err run_cast(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    if (x->dtype == DT_STR && out[0].dtype == DT_STR) return run_same(c, out);
    if (out[0].dtype == DT_STR) return numbers_to_text(c, out);
    if (x->dtype != DT_STR) {
        ref_cast(x, &out[0]);
        return ERR_OK;
    }
    for (int64_t i = 0; i < tensor_count(x) && !work_stopped(); i++)
        TRY(ref_cast_read(((const Str *)x->data)[i], &out[0], i));
    return ERR_OK;
}

// Random operators: equal seeds give equal numbers.

// Without a seed, the node's name seeds the generator: nodes differ, runs repeat.
static Rng rng_of(const Node *n) {
    float    seed = attr_float(n, "seed", 0);
    uint32_t bits = 0;
    memcpy(&bits, &seed, sizeof bits);
    Rng r = {bits};
    if (attr_has(n, "seed")) return r;
    for (const char *s = n->name; *s != '\0'; s++) r = rng_fork(r, (uint64_t)(unsigned char)*s);
    return r;
}

static Err uniform(const OpCall *c, Tensor *out) {
    ref_uniform(rng_of(c->node), (double)attr_float(c->node, "low", 0),
                (double)attr_float(c->node, "high", 1), out);
    return ERR_OK;
}

static Err normal(const OpCall *c, Tensor *out) {
    ref_normal(rng_of(c->node), (double)attr_float(c->node, "mean", 0),
               (double)attr_float(c->node, "scale", 1), out);
    return ERR_OK;
}

Err run_random(const OpCall *c, Tensor *out) {
    return c->node->op == OP_RandomUniform ? uniform(c, out) : normal(c, out);
}

Err run_random_like(const OpCall *c, Tensor *out) {
    return c->node->op == OP_RandomUniformLike ? uniform(c, out) : normal(c, out);
}

Err run_bernoulli(const OpCall *c, Tensor *out) {
    ref_bernoulli(rng_of(c->node), c->in[0], out);
    return ERR_OK;
}

Err run_multinomial(const OpCall *c, Tensor *out) {
    ref_multinomial(rng_of(c->node), c->in[0], out);
    return ERR_OK;
}

// Signal operators.

Err run_signal_window(const OpCall *c, Tensor *out) {
    static const double hann[3] = {0.5, 0.5, 0}, hamming[3] = {25.0 / 46, 21.0 / 46, 0},
                        blackman[3] = {0.42, 0.5, 0.08};
    const double *a = c->node->op == OP_HannWindow      ? hann
                      : c->node->op == OP_HammingWindow ? hamming
                                                        : blackman;
    ref_window(a, attr_int(c->node, "periodic", 1) != 0, out);
    return ERR_OK;
}

Err run_dft(const OpCall *c, Tensor *out) {
    DftParams d;
    Tensor    shape;
    TRY(infer_dft_params(c, &shape, &d));
    return ref_dft(&(RefDft){d.axis, d.n, d.bins, d.inverse}, c->in[0], c->scratch, out);
}

Err run_stft(const OpCall *c, Tensor *out) {
    StftParams s;
    Tensor     shape;
    TRY(infer_stft_params(c, &shape, &s));
    return ref_stft(&(RefStft){s.n, s.step, s.frames, s.bins}, c->in[0], infer_input(c, 2),
                    c->scratch, out);
}

Err run_mel(const OpCall *c, Tensor *out) {
    MelParams m;
    Tensor    shape;
    TRY(infer_mel_params(c, &shape, &m));
    ref_mel(&(RefMel){m.points, m.rate, m.low, m.high}, out);
    return ERR_OK;
}
