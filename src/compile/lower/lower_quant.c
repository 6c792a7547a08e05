// Quantisation, and products and convolutions of bytes with constant weights.
#include <math.h>

#include "compile/lower/lower.h"
#include "compile/spec.h"
#include "kernel/int8_conv.h"
#include "kernel/quantize.h"

static bool is_byte(DType t) { return t == DT_U8 || t == DT_I8; }

static bool is_scalar_constant(const Tensor *t) {
    return t != NULL && t->data != NULL && tensor_count(t) == 1;
}

bool lower_byte_scale(const Tensor *scale, const Tensor *zero, DType t, ByteScale *out) {
    if (!is_byte(t) || !is_scalar_constant(scale) || scale->dtype != DT_F32) return false;
    if (zero != NULL && (!is_scalar_constant(zero) || zero->dtype != t)) return false;
    *out = (ByteScale){.scale = *(const float *)scale->data,
                       .zero = zero != NULL ? (int32_t)tensor_get_f64(zero, 0) : 0,
                       .is_signed = t == DT_I8};
    return isnormal(out->scale) && out->scale > 0;
}

bool lower_quantize(Ir *ir, const Node *n) {
    QuantizeSpec s = {0};
    if (!lower_is_float(ir, n, 0)) return false;
    if (!lower_byte_scale(lower_type(ir, n, 1), lower_type(ir, n, 2),
                          ir->shaped->values[n->out[0]].dtype, &s.to))
        return false;
    lower_add(ir, n, 0, IR_QUANTIZE, 1, &s, sizeof s);
    return true;
}

bool lower_dequantize(Ir *ir, const Node *n) {
    ByteScale s;
    if (ir->shaped->values[n->out[0]].dtype != DT_F32) return false;
    if (!lower_byte_scale(lower_type(ir, n, 1), lower_type(ir, n, 2), lower_type(ir, n, 0)->dtype,
                          &s))
        return false;
    lower_add(ir, n, 0, IR_DEQUANTIZE, 1, &s, sizeof s);
    return true;
}

// The bytes of a tensor, with the scale and zero point of its range.
typedef struct DynamicBytes {
    uint32_t bytes, scale, zero;  // IR_NONE: a new value
} DynamicBytes;

// The range first, then the bytes: two layers, so that all parts know the range.
static DynamicBytes quantize_by_range(Ir *ir, const Node *n, DynamicBytes to) {
    Tensor scale = {.dtype = DT_F32}, zero = {.dtype = DT_U8}, bytes = *lower_type(ir, n, 0);
    bytes.dtype = DT_U8;
    if (to.bytes == IR_NONE) to.bytes = ir_computed(ir, n->name, bytes);
    if (to.scale == IR_NONE) to.scale = ir_computed(ir, n->name, scale);
    if (to.zero == IR_NONE) to.zero = ir_computed(ir, n->name, zero);
    IrLayer *range = ir_layer(ir, IR_BYTE_RANGE, n, 1, 2);
    range->in[0] = lower_in(ir, n, 0);
    range->out[0] = to.scale;
    range->out[1] = to.zero;
    IrLayer *l = ir_layer(ir, IR_QUANTIZE, n, 3, 1);
    l->in[0] = lower_in(ir, n, 0);
    l->in[1] = to.scale;
    l->in[2] = to.zero;
    l->out[0] = to.bytes;
    QuantizeSpec *own = arena_new(ir->arena, QuantizeSpec, 1);
    *own = (QuantizeSpec){.computed = true};
    l->spec = own;
    return to;
}

bool lower_quantize_dynamic(Ir *ir, const Node *n) {
    if (!lower_is_float(ir, n, 0)) return false;
    DynamicBytes to = {.bytes = lower_out(ir, n, 0)};
    to.scale = lower_out(ir, n, 1);
    to.zero = lower_out(ir, n, 2);
    (void)quantize_by_range(ir, n, to);
    return true;
}

// Constant weights of n columns, and their zero points.
static bool weights_fit(const Ir *ir, uint32_t weight, const Tensor *zero, int64_t n) {
    if (weight == IR_NONE || !ir_is_const(ir, weight)) return false;
    const Tensor *w = ir_type(ir, weight);
    if (!is_byte(w->dtype)) return false;
    if (zero == NULL) return true;
    return zero->data != NULL && zero->dtype == w->dtype &&
           (tensor_count(zero) == 1 || (zero->rank == 1 && zero->dims[0] == n));
}

// The zero point of x: none, a constant, or computed: then it is operand 1.
static bool zero_of_x(const Ir *ir, uint32_t value, Int8Spec *s, uint32_t *operand) {
    *operand = IR_NONE;
    if (value == IR_NONE) return true;
    const Tensor *t = ir_type(ir, value);
    if (tensor_count(t) != 1) return false;
    if (ir_is_const(ir, value))
        s->x_zero = (int32_t)tensor_get_f64(t, 0);
    else
        *operand = value;
    return true;
}

// x [..., M, K], of bytes of that sign, times a constant at input i: [K, N], or [N, K] if
// transposed.
static bool product_of(const Ir *ir, const Node *n, uint32_t i, bool x_signed, bool transposed,
                       Int8Spec *s) {
    const Tensor *a = lower_type(ir, n, 0), *b = lower_type(ir, n, i);
    if (b->rank != 2 || a->rank < 1) return false;
    int64_t k = b->dims[transposed], columns = b->dims[!transposed], m = tensor_count(a) / k;
    if (!spec_dim_fits(m) || !spec_dim_fits(columns) || k > INT8_MAX_DEPTH) return false;
    s->shape = int8_product((uint32_t)m, (uint32_t)columns, (uint32_t)k, x_signed);
    s->weight = lower_in(ir, n, i);
    s->by_rows = !transposed;
    return true;
}

static bool product_shape(const Ir *ir, const Node *n, uint32_t i, Int8Spec *s) {
    const DType t = lower_type(ir, n, 0)->dtype;
    return is_byte(t) && product_of(ir, n, i, t == DT_I8, false, s);
}

bool lower_matmul_integer(Ir *ir, const Node *n) {
    Int8Spec s = {.kind = INT8_SUMS, .w_zero = lower_type(ir, n, 3)};
    uint32_t zero;
    if (!product_shape(ir, n, 1, &s) || !zero_of_x(ir, lower_in(ir, n, 2), &s, &zero)) return false;
    if (!weights_fit(ir, s.weight, s.w_zero, s.shape.conv.oc)) return false;
    lower_add(ir, n, 0, IR_INT8_GEMM, 2, &s, sizeof s)->in[1] = zero;
    return true;
}

// Scale of each output channel, in the reference kernel's order of operations.
static bool output_scales(Ir *ir, const ByteScale *x, const Tensor *w, const ByteScale *y,
                          Int8Spec *s) {
    uint32_t oc = s->shape.conv.oc;
    if (w == NULL || w->data == NULL || w->dtype != DT_F32) return false;
    if (tensor_count(w) != 1 && (w->rank != 1 || w->dims[0] != oc)) return false;
    const float *from = w->data;
    float       *scale = arena_new(ir->arena, float, oc);
    for (uint32_t i = 0; i < oc; i++) {
        scale[i] = x->scale * from[tensor_count(w) == 1 ? 0 : i] / y->scale;
        if (!isfinite(scale[i])) return false;
    }
    s->kind = INT8_BYTES;
    s->scale = scale;
    s->x_zero = x->zero;
    s->zero = y->zero;
    s->lo = byte_lowest(y);
    s->hi = byte_highest(y);
    return true;
}

// Scales and zero points of x and y, and of the weights at input 3.
static bool qlinear_scales(Ir *ir, const Node *n, Int8Spec *s) {
    ByteScale     x, y;
    const Tensor *y_zero = lower_type(ir, n, 7);
    if (!lower_byte_scale(lower_type(ir, n, 1), lower_type(ir, n, 2), lower_type(ir, n, 0)->dtype,
                          &x) ||
        !lower_byte_scale(lower_type(ir, n, 6), y_zero, ir->shaped->values[n->out[0]].dtype, &y))
        return false;
    s->w_zero = lower_type(ir, n, 5);
    return weights_fit(ir, s->weight, s->w_zero, s->shape.conv.oc) &&
           output_scales(ir, &x, lower_type(ir, n, 4), &y, s);
}

bool lower_matmul_qlinear(Ir *ir, const Node *n) {
    Int8Spec s = {0};
    if (!product_shape(ir, n, 3, &s) || !qlinear_scales(ir, n, &s)) return false;
    lower_add(ir, n, 0, IR_INT8_GEMM, 1, &s, sizeof s);
    return true;
}

static bool conv_shape(const Ir *ir, const Node *n, uint32_t i, Int8Spec *s) {
    const Tensor *x = lower_type(ir, n, 0), *w = lower_type(ir, n, i);
    if (!is_byte(x->dtype) || !lower_conv_shape(n, x, w, &s->shape.conv)) return false;
    const ConvShape *c = &s->shape.conv;
    if ((uint64_t)c->ic / c->groups * c->kh * c->kw > INT8_MAX_DEPTH) return false;
    s->shape.x_signed = x->dtype == DT_I8;
    s->shape.x_pitch = int8_pitch(c->ic, ir->lanes);
    s->shape.y_pitch = int8_pitch(c->oc, ir->lanes);
    s->weight = lower_in(ir, n, i);
    return true;
}

static bool is_depthwise(const ConvShape *s) {
    return s->groups > 1 && s->groups == s->ic && s->oc == s->ic;
}

bool lower_conv_integer(Ir *ir, const Node *n) {
    Int8Spec s = {.kind = INT8_SUMS, .w_zero = lower_type(ir, n, 3)};
    uint32_t zero;
    if (!conv_shape(ir, n, 1, &s) || !zero_of_x(ir, lower_in(ir, n, 2), &s, &zero)) return false;
    if (is_depthwise(&s.shape.conv)) return false;
    if (!weights_fit(ir, s.weight, s.w_zero, s.shape.conv.oc)) return false;
    lower_add(ir, n, 0, IR_INT8_CONV, 2, &s, sizeof s)->in[1] = zero;
    return true;
}

static bool bias_fits(const Tensor *t, uint32_t n) {
    if (t == NULL) return true;
    if (t->data == NULL || t->dtype != DT_I32 || tensor_count(t) != n) return false;
    const int32_t *x = t->data;
    for (uint32_t i = 0; i < n; i++)
        if (x[i] > INT8_MAX_BIAS || x[i] < -INT8_MAX_BIAS) return false;
    return true;
}

// QGemm: alpha * a_scale * b_scale * (ab + c) as bytes or, without a scale of y, as floats.
bool lower_gemm_quant(Ir *ir, const Node *n) {
    const bool    transposed = attr_int(n, "transB", 0) != 0;
    const DType   t = lower_type(ir, n, 0)->dtype;
    const Tensor *bias = lower_type(ir, n, 6), *y_scale = lower_type(ir, n, 7);
    const float   one = 1;
    const Tensor  unscaled = {.dtype = DT_F32, .data = (void *)&one};
    Int8Spec      s = {.w_zero = lower_type(ir, n, 5)};
    ByteScale     x, y;
    if (attr_int(n, "transA", 0) != 0 || !is_byte(t)) return false;
    if (!product_of(ir, n, 3, t == DT_I8, transposed, &s)) return false;
    if (!lower_byte_scale(lower_type(ir, n, 1), lower_type(ir, n, 2), t, &x)) return false;
    if (!lower_byte_scale(y_scale != NULL ? y_scale : &unscaled, lower_type(ir, n, 8),
                          y_scale != NULL ? ir->shaped->values[n->out[0]].dtype : DT_U8, &y))
        return false;
    x.scale *= attr_float(n, "alpha", 1);
    if (!weights_fit(ir, s.weight, s.w_zero, s.shape.conv.oc) ||
        !bias_fits(bias, s.shape.conv.oc) || !output_scales(ir, &x, lower_type(ir, n, 4), &y, &s))
        return false;
    if (y_scale == NULL) s.kind = INT8_FLOATS;
    if (bias != NULL && (bias->rank < 1 || bias->dims[bias->rank - 1] != s.shape.conv.oc))
        return false;
    s.bias = bias != NULL ? bias->data : NULL;
    lower_add(ir, n, 0, IR_INT8_GEMM, 1, &s, sizeof s);
    return true;
}

// Inputs of a product of bytes with a float result; IR_NONE: absent.
typedef struct FloatProduct {
    uint32_t x, x_scale, x_zero;  // x_scale is one float
    uint32_t w_scale;             // number of an input of the node
    uint32_t bias;
} FloatProduct;

// Sums as floats, times both scales, plus the bias: fusion makes an epilogue of it.
static void scale_sums(Ir *ir, const Node *n, uint32_t sums, const FloatProduct *p) {
    Expr e = {.n_args = 3, .args = {sums, p->x_scale, lower_in(ir, n, p->w_scale)}};
    expr_step(&e, (ExprStep){.op = EWISE_MUL, .a = EXPR_ARG(1), .b = EXPR_ARG(2)});
    expr_step(&e, (ExprStep){.op = EWISE_MUL, .a = EXPR_ARG(0), .b = 0});
    if (p->bias != IR_NONE) {
        e.args[e.n_args++] = p->bias;
        expr_step(&e, (ExprStep){.op = EWISE_ADD, .a = 1, .b = EXPR_ARG(3)});
    }
    lower_add(ir, n, 0, IR_ELEMENTWISE, 0, NULL, 0)->expr = e;
}

static void add_float_product(Ir *ir, const Node *n, Int8Spec s, const FloatProduct *p) {
    Tensor    t = ir->shaped->values[n->out[0]];
    uint32_t  sums = ir_computed(ir, n->name, t);
    Int8Spec *own = arena_new(ir->arena, Int8Spec, 1);
    s.kind = INT8_FLOATS;
    *own = s;
    IrLayer *l = ir_layer(ir, IR_INT8_GEMM, n, 2, 1);
    l->in[0] = p->x;
    l->in[1] = p->x_zero;
    l->out[0] = sums;
    l->expr = (Expr){.n_args = 1, .args = {IR_NONE}};
    l->spec = own;
    scale_sums(ir, n, sums, p);
}

static bool weights_scale(const Ir *ir, const Node *n, uint32_t scale, const Int8Spec *s) {
    const Tensor *t = lower_type(ir, n, scale);
    return t->data != NULL && t->dtype == DT_F32 && t->rank <= 1 &&
           weights_fit(ir, s->weight, s->w_zero, s->shape.conv.oc);
}

bool lower_matmul_to_float(Ir *ir, const Node *n) {
    Int8Spec     s = {.w_zero = lower_type(ir, n, 5)};
    FloatProduct p = {.x = lower_in(ir, n, 0),
                      .x_scale = lower_in(ir, n, 2),
                      .w_scale = 3,
                      .bias = lower_in(ir, n, 6)};
    if (!product_shape(ir, n, 1, &s) || !zero_of_x(ir, lower_in(ir, n, 4), &s, &p.x_zero))
        return false;
    if (tensor_count(ir_type(ir, p.x_scale)) != 1 || !weights_scale(ir, n, p.w_scale, &s))
        return false;
    add_float_product(ir, n, s, &p);
    return true;
}

bool lower_matmul_dynamic(Ir *ir, const Node *n) {
    Int8Spec s = {.w_zero = lower_type(ir, n, 3)};
    if (!lower_is_float(ir, n, 0) || !product_of(ir, n, 1, false, false, &s) ||
        !weights_scale(ir, n, 2, &s))
        return false;
    DynamicBytes x = quantize_by_range(ir, n, (DynamicBytes){IR_NONE, IR_NONE, IR_NONE});
    FloatProduct p = {.x = x.bytes,
                      .x_scale = x.scale,
                      .x_zero = x.zero,
                      .w_scale = 2,
                      .bias = lower_in(ir, n, 4)};
    add_float_product(ir, n, s, &p);
    return true;
}

bool lower_conv_qlinear(Ir *ir, const Node *n) {
    Int8Spec      s = {0};
    const Tensor *bias = lower_type(ir, n, 8);
    if (!conv_shape(ir, n, 3, &s) || !qlinear_scales(ir, n, &s)) return false;
    if (!bias_fits(bias, s.shape.conv.oc)) return false;
    s.bias = bias != NULL ? bias->data : NULL;
    bool depth = is_depthwise(&s.shape.conv) && s.shape.x_pitch % 8 == 0;
    lower_add(ir, n, 0, depth ? IR_INT8_DEPTHWISE : IR_INT8_CONV, 1, &s, sizeof s);
    return true;
}
