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

// The range first, then the bytes: two layers, so that all parts know the range.
bool lower_quantize_dynamic(Ir *ir, const Node *n) {
    Tensor       scale = {.dtype = DT_F32}, zero = {.dtype = DT_U8};
    QuantizeSpec s = {.computed = true};
    if (!lower_is_float(ir, n, 0)) return false;
    uint32_t x = lower_in(ir, n, 0), y = lower_out(ir, n, 0);
    uint32_t out[2] = {lower_out(ir, n, 1), lower_out(ir, n, 2)};
    if (out[0] == IR_NONE) out[0] = ir_computed(ir, n->name, scale);
    if (out[1] == IR_NONE) out[1] = ir_computed(ir, n->name, zero);
    IrLayer *range = ir_layer(ir, IR_BYTE_RANGE, n, 1, 2);
    range->in[0] = x;
    range->out[0] = out[0];
    range->out[1] = out[1];
    IrLayer *l = ir_layer(ir, IR_QUANTIZE, n, 3, 1);
    l->in[0] = x;
    l->in[1] = out[0];
    l->in[2] = out[1];
    l->out[0] = y;
    QuantizeSpec *own = arena_new(ir->arena, QuantizeSpec, 1);
    *own = s;
    l->spec = own;
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

// x [..., M, K] times a constant [K, N] at input i.
static bool product_shape(const Ir *ir, const Node *n, uint32_t i, Int8Spec *s) {
    const Tensor *a = lower_type(ir, n, 0), *b = lower_type(ir, n, i);
    if (!is_byte(a->dtype) || b->rank != 2 || a->rank < 1) return false;
    int64_t k = b->dims[0], columns = b->dims[1], m = tensor_count(a) / k;
    if (!spec_dim_fits(m) || !spec_dim_fits(columns) || k > INT8_MAX_DEPTH) return false;
    s->shape = int8_product((uint32_t)m, (uint32_t)columns, (uint32_t)k, a->dtype == DT_I8);
    s->weight = lower_in(ir, n, i);
    s->by_rows = true;
    return true;
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
