// Quantised networks: a layer over dequantised bytes with a quantised result computes with
// bytes.
//
// A product or convolution sums integers exactly and multiplies once by the ratio of the scales, as
// QLinearConv is defined. Expressions over bytes are computed in float, in registers and L1.
// Reshapes and concatenations move bytes.
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "compile/lower/lower.h"
#include "compile/spec.h"

// 32-bit sums cast to float are written as floats.
void fuse_integer_casts(Ir *ir) {
    ir_count_uses(ir);
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        IrLayer *l = &ir->layers[i];
        if (l->dead || l->kind != IR_REF || l->node->op != OP_Cast || l->in[0] == IR_NONE) continue;
        if (ir_type(ir, l->out[0])->dtype != DT_F32 || !ir_has_one_use(ir, l->in[0])) continue;
        uint32_t at = ir->values[l->in[0]].producer;
        if (at == IR_NONE || ir->layers[at].kind != IR_INT8_GEMM) continue;
        IrLayer  *sums = &ir->layers[at];
        Int8Spec *s = sums->spec;
        if (s->kind != INT8_SUMS) continue;
        s->kind = INT8_FLOATS;
        sums->out[0] = l->out[0];
        l->dead = true;
    }
    ir_remove_dead(ir);
}

// The bytes that a float value stands for; value IR_NONE: unknown.
typedef struct Bytes {
    uint32_t  value;
    ByteScale scale;
} Bytes;

typedef struct Pass {
    Ir         *ir;
    Bytes      *of;         // [n] of the values that existed at the start
    uint32_t   *reader;     // [n] old layer that is their only reader; IR_NONE: none or several
    uint32_t   *quantizer;  // [n] first old quantize layer that reads them; IR_NONE: none
    uint32_t    n_known;
    IrLayerList layers;  // the new list
} Pass;

static IrLayer make_layer(Ir *ir, IrKind kind, const Node *n, uint32_t n_in, uint32_t out) {
    IrLayer l = {.kind = kind, .node = n, .n_in = n_in};
    l.n_out = kind == IR_BYTE_ELEMENTWISE ? 2 : 1;
    l.in = arena_new(ir->arena, uint32_t, n_in);
    l.out = arena_new(ir->arena, uint32_t, 2);
    l.out[0] = out;
    l.out[1] = IR_NONE;
    return l;
}

static void *keep(Ir *ir, const void *spec, size_t bytes) {
    void *own = arena_alloc(ir->arena, 1, bytes, _Alignof(max_align_t));
    return memcpy(own, spec, bytes);
}

static const Bytes *bytes_of(const Pass *p, uint32_t value) {
    if (value == IR_NONE || value >= p->n_known || p->of[value].value == IR_NONE) return NULL;
    return &p->of[value];
}

static bool same_scale(const ByteScale *a, const ByteScale *b) {
    return a->scale == b->scale && a->zero == b->zero && a->is_signed == b->is_signed;
}

// The quantize layer that is the only reader of a value; or NULL.
static IrLayer *quantizer_of(const Pass *p, uint32_t value) {
    if (value >= p->n_known || p->reader[value] == IR_NONE || p->ir->values[value].output)
        return NULL;
    IrLayer *l = &p->ir->layers[p->reader[value]];
    if (l->dead || l->kind != IR_QUANTIZE || ((const QuantizeSpec *)l->spec)->computed) return NULL;
    return l;
}

static const ByteScale *scale_of(const IrLayer *quantizer) {
    return &((const QuantizeSpec *)quantizer->spec)->to;
}

// A constant input that DequantizeLinear widens: its bytes, and a scale and zero point per tensor
// or along an axis.
typedef struct WideConstant {
    uint32_t      value;  // of the integers
    const Tensor *scale, *zero;
    int64_t       axis;
} WideConstant;

static bool wide_constant(const Ir *ir, const Node *n, uint32_t i, WideConstant *out) {
    const Graph *g = ir->shaped->graph;
    if (i >= n->n_in || n->in[i] == NO_VALUE) return false;
    uint32_t at = g->values[n->in[i]].producer;
    if (at == NO_NODE) return false;
    const Node *d = &g->nodes[at];
    if (d->op != OP_DequantizeLinear && d->op != OP_MsDequantizeLinear) return false;
    *out = (WideConstant){lower_in(ir, d, 0), lower_type(ir, d, 1), lower_type(ir, d, 2),
                          attr_int(d, "axis", 1)};
    if (out->value == IR_NONE || !ir_is_const(ir, out->value) || out->scale == NULL) return false;
    if (out->scale->data == NULL || out->scale->dtype != DT_F32 || out->scale->rank > 1)
        return false;
    if (out->axis < 0) out->axis += ir_type(ir, out->value)->rank;
    return out->zero == NULL || out->zero->data != NULL;
}

// One element, or one per output channel along the axis of the channels.
static bool along_channels(const WideConstant *w, const Tensor *t, int64_t axis, uint32_t n) {
    if (t == NULL || tensor_count(t) == 1) return true;
    return w->axis == axis && tensor_count(t) == n;
}

static float scale_at(const Tensor *t, uint32_t i) {
    return ((const float *)t->data)[tensor_count(t) == 1 ? 0 : i];
}

// The bias in units of the product of both scales: as stored, or rounded.
static bool integer_bias(Ir *ir, const Node *n, const float *bias, float x_scale,
                         const Tensor *w_scale, Int8Spec *s) {
    uint32_t     oc = s->shape.conv.oc;
    WideConstant wide;
    if (bias == NULL) return true;
    int32_t *out = arena_new(ir->arena, int32_t, oc);
    bool     stored = wide_constant(ir, n, 2, &wide);
    stored = stored && ir_type(ir, wide.value)->dtype == DT_I32 &&
             tensor_count(ir_type(ir, wide.value)) == oc && wide.zero != NULL;
    for (uint32_t i = 0; i < oc; i++) {
        double unit = (double)x_scale * (double)scale_at(w_scale, i);
        double x = nearbyint((double)bias[i] / unit);
        if (stored && tensor_get_f64(wide.zero, 0) == 0 &&
            fabs((double)scale_at(wide.scale, i) / unit - 1) < 1e-5)
            x = tensor_get_f64(ir_type(ir, wide.value), i);
        if (!(fabs(x) <= INT8_MAX_BIAS)) return false;
        out[i] = (int32_t)x;
    }
    s->bias = out;
    return true;
}

// Quantised weights with `axis` as the axis of their output channels.
static bool byte_weights(const Ir *ir, const Node *n, int64_t axis, uint32_t oc, WideConstant *w,
                         Int8Spec *s) {
    if (n == NULL || !wide_constant(ir, n, 1, w)) return false;
    DType t = ir_type(ir, w->value)->dtype;
    if (t != DT_I8 && t != DT_U8) return false;
    if (!along_channels(w, w->scale, axis, oc) || !along_channels(w, w->zero, axis, oc))
        return false;
    for (uint32_t i = 0; i < (uint32_t)tensor_count(w->scale); i++)
        if (!isnormal(scale_at(w->scale, i))) return false;
    s->weight = w->value;
    s->w_zero = w->zero;
    return true;
}

// The bounds that clip(lo, hi) in floats sets on bytes.
static void clip_bytes(const ByteScale *y, float lo, float hi, Int8Spec *s) {
    float low = nearbyintf(lo / y->scale), high = nearbyintf(hi / y->scale);
    s->lo = fmaxf(byte_lowest(y), fminf(byte_highest(y), low));
    s->hi = fminf(byte_highest(y), fmaxf(byte_lowest(y), high));
}

static bool only_clips(const Expr *e) {
    if (e->n_steps == 0) return true;
    return e->n_steps == 1 && e->n_args == 1 && e->steps[0].op == EWISE_CLIP;
}

static bool set_bytes_out(Ir *ir, const IrLayer *l, const ByteScale *x, const Tensor *w_scale,
                          const ByteScale *y, Int8Spec *s) {
    float *scale = arena_new(ir->arena, float, s->shape.conv.oc);
    for (uint32_t i = 0; i < s->shape.conv.oc; i++)
        scale[i] = x->scale * scale_at(w_scale, i) / y->scale;
    s->kind = INT8_BYTES;
    s->scale = scale;
    s->zero = y->zero;
    s->lo = byte_lowest(y);
    s->hi = byte_highest(y);
    if (l->expr.n_steps == 1) clip_bytes(y, l->expr.steps[0].p, l->expr.steps[0].q, s);
    return true;
}

static void push_int8(Pass *p, IrLayer l, IrKind kind, const Bytes *x, uint32_t out, Int8Spec *s) {
    l.kind = kind;
    l.spec = keep(p->ir, s, sizeof *s);
    l.in = arena_new(p->ir->arena, uint32_t, 1);
    l.in[0] = x->value;
    l.out = arena_new(p->ir->arena, uint32_t, 1);
    l.out[0] = out;
    if (s->kind == INT8_BYTES) l.expr = (Expr){.n_args = 1, .args = {IR_NONE}};
    ir_list_add(p->ir, &p->layers, l);
}

static bool fuse_conv(Pass *p, const IrLayer *l) {
    Ir             *ir = p->ir;
    const ConvSpec *c = l->spec;
    const Bytes    *x = bytes_of(p, l->in[0]);
    IrLayer        *q = quantizer_of(p, l->out[0]);
    Int8Spec        s = {.shape = {.conv = c->shape}};
    WideConstant    w;
    if (x == NULL || q == NULL || !only_clips(&l->expr) || c->shape.kd > 0) return false;
    const ConvShape *shape = &c->shape;
    if ((uint64_t)shape->ic / shape->groups * shape->kh * shape->kw > INT8_MAX_DEPTH) return false;
    s.shape.x_signed = x->scale.is_signed;
    s.shape.x_pitch = int8_pitch(shape->ic, ir->lanes);
    s.shape.y_pitch = int8_pitch(shape->oc, ir->lanes);
    s.x_zero = x->scale.zero;
    if (!byte_weights(ir, l->node, 0, shape->oc, &w, &s) || c->channels.scale != NULL) return false;
    if (!integer_bias(ir, l->node, c->channels.bias, x->scale.scale, w.scale, &s)) return false;
    if (!set_bytes_out(ir, l, &x->scale, w.scale, scale_of(q), &s)) return false;
    bool depth = l->kind == IR_DEPTHWISE && s.shape.x_pitch % 8 == 0;
    push_int8(p, *l, depth ? IR_INT8_DEPTHWISE : IR_INT8_CONV, x, q->out[0], &s);
    q->dead = true;
    return true;
}

// Without a quantised result, the product is written as floats, and the epilogue stays.
static bool fuse_gemm(Pass *p, const IrLayer *l) {
    Ir             *ir = p->ir;
    const GemmSpec *c = l->spec;
    const Bytes    *x = bytes_of(p, l->in[0]);
    IrLayer        *q = quantizer_of(p, l->out[0]);
    Int8Spec        s = {0};
    WideConstant    w;
    if (x == NULL || c->alpha != 1 || c->channels.scale != NULL || c->k > INT8_MAX_DEPTH)
        return false;
    if (!only_clips(&l->expr)) q = NULL;
    s.shape = int8_product((uint32_t)c->m, (uint32_t)c->n, (uint32_t)c->k, x->scale.is_signed);
    s.by_rows = !c->transposed;
    s.x_zero = x->scale.zero;
    if (!byte_weights(ir, l->node, c->transposed ? 0 : 1, (uint32_t)c->n, &w, &s)) return false;
    if (q != NULL) {
        if (!integer_bias(ir, l->node, c->channels.bias, x->scale.scale, w.scale, &s)) return false;
        if (!set_bytes_out(ir, l, &x->scale, w.scale, scale_of(q), &s)) return false;
        q->dead = true;
        push_int8(p, *l, IR_INT8_GEMM, x, q->out[0], &s);
        return true;
    }
    float *scale = arena_new(ir->arena, float, (size_t)c->n);
    for (uint32_t i = 0; i < c->n; i++) scale[i] = x->scale.scale * scale_at(w.scale, i);
    s.kind = INT8_FLOATS;
    s.scale = scale;
    s.float_bias = c->channels.bias;
    push_int8(p, *l, IR_INT8_GEMM, x, l->out[0], &s);
    return true;
}

static bool fuse_pool(Pass *p, const IrLayer *l) {
    const Bytes *x = bytes_of(p, l->in[0]);
    IrLayer     *q = quantizer_of(p, l->out[0]);
    if (x == NULL || q == NULL || ((const Pool *)l->spec)->planes > 0) return false;
    Int8PoolSpec s = {*(const Pool *)l->spec, x->scale, *scale_of(q)};
    IrLayer      now = make_layer(p->ir, IR_INT8_POOL, l->node, 1, q->out[0]);
    now.in[0] = x->value;
    now.spec = keep(p->ir, &s, sizeof s);
    ir_list_add(p->ir, &p->layers, now);
    q->dead = true;
    return true;
}

// A view of bytes, then dequantised: layers after it see the bytes.
static bool fuse_view(Pass *p, const IrLayer *l) {
    Ir          *ir = p->ir;
    const Bytes *x = bytes_of(p, l->in[0]);
    if (x == NULL) return false;
    Tensor t = *ir_type(ir, l->out[0]);
    t.dtype = ir_type(ir, x->value)->dtype;
    IrLayer view = make_layer(ir, IR_VIEW, l->node, 1, ir_computed(ir, l->node->name, t));
    view.in[0] = x->value;
    ir_list_add(p->ir, &p->layers, view);
    IrLayer wide = make_layer(ir, IR_DEQUANTIZE, l->node, 1, l->out[0]);
    wide.in[0] = view.out[0];
    wide.spec = keep(ir, &x->scale, sizeof x->scale);
    ir_list_add(p->ir, &p->layers, wide);
    p->of[l->out[0]] = (Bytes){view.out[0], x->scale};
    return true;
}

// Bytes in another scale.
static uint32_t requantized(Pass *p, const IrLayer *l, const Bytes *x, const ByteScale *to,
                            uint32_t out) {
    Ir *ir = p->ir;
    if (same_scale(&x->scale, to) && out == IR_NONE) return x->value;
    ByteElementwiseSpec s = {.from = {x->scale}, .to = *to};
    Tensor              t = *ir_type(ir, x->value);
    t.dtype = to->is_signed ? DT_I8 : DT_U8;
    s.expr.n_args = 1;
    CHECK(expr_step(&s.expr, (ExprStep){.op = EWISE_COPY, .a = EXPR_ARG(0)}));
    if (out == IR_NONE) out = ir_computed(ir, l->node->name, t);
    IrLayer now = make_layer(ir, IR_BYTE_ELEMENTWISE, l->node, 1, out);
    now.in[0] = x->value;
    now.spec = keep(ir, &s, sizeof s);
    ir_list_add(p->ir, &p->layers, now);
    return out;
}

static bool fuse_quantize(Pass *p, const IrLayer *l) {
    const Bytes *x = bytes_of(p, l->in[0]);
    if (x == NULL || ((const QuantizeSpec *)l->spec)->computed) return false;
    const ByteScale *to = scale_of(l);
    if (!same_scale(&x->scale, to)) {
        (void)requantized(p, l, x, to, l->out[0]);
        return true;
    }
    IrLayer view = make_layer(p->ir, IR_VIEW, l->node, 1, l->out[0]);
    view.in[0] = x->value;
    ir_list_add(p->ir, &p->layers, view);
    return true;
}

static bool fuse_concat(Pass *p, const IrLayer *l) {
    IrLayer *q = quantizer_of(p, l->out[0]);
    if (q == NULL) return false;
    for (uint32_t i = 0; i < l->n_in; i++)
        if (bytes_of(p, l->in[i]) == NULL) return false;
    IrLayer now = make_layer(p->ir, IR_CONCAT, l->node, l->n_in, q->out[0]);
    for (uint32_t i = 0; i < l->n_in; i++)
        now.in[i] = requantized(p, l, bytes_of(p, l->in[i]), scale_of(q), IR_NONE);
    ir_list_add(p->ir, &p->layers, now);
    q->dead = true;
    return true;
}

// Every argument has the result's shape or is one float; at least one is bytes.
static bool args_are_bytes(const Pass *p, const IrLayer *l) {
    const Tensor *out = ir_type(p->ir, l->out[0]);
    bool          any = false;
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        const Tensor *t = ir_type(p->ir, l->expr.args[i]);
        bool          whole = tensor_same_shape(t, out);
        if (!whole && tensor_count(t) != 1) return false;
        any = any || (whole && bytes_of(p, l->expr.args[i]) != NULL);
    }
    return any;
}

static bool fuse_expression(Pass *p, const IrLayer *l) {
    if (p->quantizer[l->out[0]] == IR_NONE || !args_are_bytes(p, l)) return false;
    IrLayer *q = &p->ir->layers[p->quantizer[l->out[0]]];
    if (q->dead) return false;
    ByteElementwiseSpec s = {.expr = l->expr, .to = *scale_of(q)};
    const Tensor       *out = ir_type(p->ir, l->out[0]);
    IrLayer now = make_layer(p->ir, IR_BYTE_ELEMENTWISE, l->node, l->expr.n_args, q->out[0]);
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        const Bytes *x = bytes_of(p, l->expr.args[i]);
        now.in[i] = l->expr.args[i];
        if (x == NULL || !tensor_same_shape(ir_type(p->ir, l->expr.args[i]), out)) continue;
        now.in[i] = x->value;
        s.from[i] = x->scale;
    }
    if (quantizer_of(p, l->out[0]) == NULL) now.out[1] = l->out[0];
    now.spec = keep(p->ir, &s, sizeof s);
    ir_list_add(p->ir, &p->layers, now);
    q->dead = true;
    return true;
}

static bool fuse_layer(Pass *p, const IrLayer *l) {
    switch (l->kind) {
    case IR_CONV:
    case IR_DEPTHWISE: return fuse_conv(p, l);
    case IR_GEMM: return fuse_gemm(p, l);
    case IR_POOL: return fuse_pool(p, l);
    case IR_VIEW: return fuse_view(p, l);
    case IR_CONCAT: return fuse_concat(p, l);
    case IR_ELEMENTWISE: return fuse_expression(p, l);
    case IR_QUANTIZE: return fuse_quantize(p, l);
    default: return false;
    }
}

static void find_readers(Pass *p) {
    Ir *ir = p->ir;
    for (uint32_t i = 0; i < ir->n_values; i++) {
        p->reader[i] = p->quantizer[i] = IR_NONE;
        p->of[i].value = IR_NONE;
    }
    for (uint32_t i = 0; i < ir->n_layers; i++)
        for (uint32_t k = 0; k < ir_operand_count(&ir->layers[i]); k++) {
            uint32_t v = ir_operand(&ir->layers[i], k);
            if (v == IR_NONE) continue;
            if (ir_has_one_use(ir, v)) p->reader[v] = i;
            if (ir->layers[i].kind != IR_QUANTIZE || p->quantizer[v] != IR_NONE) continue;
            if (!((const QuantizeSpec *)ir->layers[i].spec)->computed) p->quantizer[v] = i;
        }
}

// Bytes that are only dequantised again, with the same scale, are never stored: their value is
// rounded, and the layers around stay in floating point.
static void round_in_place(Ir *ir) {
    ir_count_uses(ir);
    bool *only = arena_new(ir->arena, bool, ir->n_values);
    for (uint32_t i = 0; i < ir->n_values; i++) only[i] = !ir->values[i].output;
    for (uint32_t i = 0; i < ir->n_layers; i++)
        for (uint32_t k = 0; k < ir->layers[i].n_in; k++)
            if (ir->layers[i].kind != IR_DEQUANTIZE && ir->layers[i].in[k] != IR_NONE)
                only[ir->layers[i].in[k]] = false;
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        IrLayer *l = &ir->layers[i];
        if (l->kind != IR_DEQUANTIZE || !only[l->in[0]]) continue;
        const IrLayer *q = ir_producer(ir, l->in[0], IR_QUANTIZE);
        if (q == NULL || ((const QuantizeSpec *)q->spec)->computed) continue;
        const ByteScale s = *(const ByteScale *)l->spec;
        if (!same_scale(&s, scale_of(q))) continue;
        l->kind = IR_ELEMENTWISE;
        l->expr = (Expr){.n_args = 1, .args = {q->in[0]}};
        l->n_in = 0;
        l->spec = NULL;
        expr_step(&l->expr, (ExprStep){.op = EWISE_QDQ,
                                       .a = EXPR_ARG(0),
                                       .p = s.scale,
                                       .q = (float)s.zero,
                                       .lo = s.is_signed ? -128.0f : 0.0f,
                                       .hi = s.is_signed ? 127.0f : 255.0f});
    }
}

// The image is quantised to pixels, or computed from images that are.
static void make_pixels(const Ir *ir, uint32_t value, uint32_t depth) {
    const IrLayer *q = ir_producer(ir, value, IR_QUANTIZE);
    const IrLayer *e = ir_producer(ir, value, IR_BYTE_ELEMENTWISE);
    if (q != NULL && ir_type(ir, value)->rank >= 3) ((QuantizeSpec *)q->spec)->to_pixels = true;
    for (uint32_t i = 0; e != NULL && depth > 0 && i < e->n_in; i++)
        if (e->in[i] != IR_NONE && tensor_same_shape(ir_type(ir, e->in[i]), ir_type(ir, value)))
            make_pixels(ir, e->in[i], depth - 1);
}

// Images that kernels over pixels read are quantised to pixels.
static void quantize_to_pixels(Ir *ir) {
    enum { DEPTH = 4 };
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        const IrLayer *l = &ir->layers[i];
        if (l->kind == IR_INT8_CONV || l->kind == IR_INT8_DEPTHWISE || l->kind == IR_INT8_POOL)
            make_pixels(ir, l->in[0], DEPTH);
    }
}

void fuse_bytes(Ir *ir) {
    Pass p = {.ir = ir, .n_known = ir->n_values};
    ir_count_uses(ir);
    p.of = arena_new(ir->arena, Bytes, ir->n_values);
    p.reader = arena_new(ir->arena, uint32_t, ir->n_values);
    p.quantizer = arena_new(ir->arena, uint32_t, ir->n_values);
    find_readers(&p);
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        const IrLayer l = ir->layers[i];
        if (l.dead || fuse_layer(&p, &l)) continue;
        if (l.kind == IR_DEQUANTIZE) p.of[l.out[0]] = (Bytes){l.in[0], *(const ByteScale *)l.spec};
        ir_list_add(p.ir, &p.layers, l);
    }
    ir_use_layers(ir, &p.layers);
    ir_remove_dead(ir);
    round_in_place(ir);
    ir_remove_dead(ir);
    quantize_to_pixels(ir);
}
