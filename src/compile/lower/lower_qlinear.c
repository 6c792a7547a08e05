// QLinear operators of com.microsoft: dequantised operands, the float operator, a quantised result.
// Fusion turns the three into one layer over bytes (fuse_bytes.c).
#include "base/err.h"
#include "base/tensor.h"
#include "compile/lower/lower.h"
#include "compile/spec.h"
#include "kernel/quantize.h"
#include "model/infer/infer.h"
#include "model/params/quant.h"

typedef struct Parts {
    QLinear   q;
    ByteScale from[QLINEAR_OPERANDS], to;
} Parts;

static bool read_parts(Ir *ir, const Node *n, Parts *p) {
    const Tensor **in = arena_new(ir->arena, const Tensor *, n->n_in);
    OpCall         c = {.node = n, .in = in};
    for (uint32_t i = 0; i < n->n_in; i++) in[i] = lower_type(ir, n, i);
    if (qlinear_read(&c, &p->q) != ERR_OK) return false;
    const QLinear *q = &p->q;
    const DType    t = in[q->first]->dtype;
    for (uint32_t i = 0; i < q->operands; i++) {
        const uint32_t at = q->first + 3 * i;
        if (!lower_byte_scale(in[at + 1], infer_input(&c, at + 2), t, &p->from[i])) return false;
    }
    return lower_byte_scale(in[q->result], infer_input(&c, q->result + 1), t, &p->to);
}

// One value stands for one number: the same bytes with two scales are left to the reference kernel.
static bool scales_agree(const Node *n, const Parts *p) {
    for (uint32_t i = 0; i < p->q.operands; i++)
        for (uint32_t k = 0; k < i; k++) {
            const ByteScale *a = &p->from[i], *b = &p->from[k];
            if (n->in[p->q.first + 3 * i] == n->in[p->q.first + 3 * k] &&
                (a->scale != b->scale || a->zero != b->zero))
                return false;
        }
    return true;
}

static bool dequantize_constant(Ir *ir, uint32_t bytes, const ByteScale *from, uint32_t *out) {
    const Tensor *x = ir_type(ir, bytes);
    Tensor        y = *x;
    y.dtype = DT_F32;
    y.data = NULL;
    if (tensor_alloc(&y, ir->arena) != ERR_OK) return false;
    float        *to = y.data;
    const int64_t n = ir_omits_data(ir, (size_t)tensor_count(x)) ? 0 : tensor_count(x);
    for (int64_t i = 0; i < n; i++)
        to[i] = ((float)tensor_get_f64(x, i) - (float)from->zero) * from->scale;
    *out = ir_const(ir, ir->values[bytes].name, y);
    return true;
}

static bool dequantized(Ir *ir, const Node *n, uint32_t bytes, const ByteScale *from,
                        uint32_t *out) {
    Tensor y = *ir_type(ir, bytes);
    if (ir_is_const(ir, bytes)) return dequantize_constant(ir, bytes, from, out);
    y.dtype = DT_F32;
    *out = ir_computed(ir, n->name, y);
    IrLayer *l = ir_layer(ir, IR_DEQUANTIZE, n, 1, 1);
    l->in[0] = bytes;
    l->out[0] = *out;
    ByteScale *own = arena_new(ir->arena, ByteScale, 1);
    *own = *from;
    l->spec = own;
    return true;
}

static bool lower_inner(Ir *ir, const Node *n) {
    switch (n->op) {
    case OP_Add:
    case OP_Mul: return lower_binary(ir, n);
    case OP_Sigmoid:
    case OP_LeakyRelu: return lower_unary(ir, n);
    case OP_AveragePool: return lower_pool(ir, n);
    case OP_GlobalAveragePool: return lower_pool_global(ir, n);
    case OP_Softmax: return lower_softmax(ir, n);
    case OP_Concat: return lower_concat(ir, n);
    default: return false;
    }
}

// The graph's values stand for floats while the float operator is lowered.
static bool lower_floats(Ir *ir, const Node *n, const Parts *p, const uint32_t *floats) {
    const QLinear *q = &p->q;
    Node          *inner = arena_new(ir->arena, Node, 1);
    uint32_t      *in = arena_new(ir->arena, uint32_t, q->operands);
    uint32_t       bytes[QLINEAR_OPERANDS] = {0};
    *inner = qlinear_node(n, q);
    inner->in = in;
    for (uint32_t i = 0; i < q->operands; i++) {
        in[i] = n->in[q->first + 3 * i];
        bytes[i] = ir->of_value[in[i]];
    }
    for (uint32_t i = 0; i < q->operands; i++) ir->of_value[in[i]] = floats[i];
    const bool done = lower_inner(ir, inner);
    for (uint32_t i = 0; i < q->operands; i++) ir->of_value[in[i]] = bytes[i];
    return done;
}

static void add_quantize(Ir *ir, const Node *n, const ByteScale *to) {
    const uint32_t floats = ir->of_value[n->out[0]];
    QuantizeSpec   s = {.to = *to};
    ir->values[floats].type.dtype = DT_F32;
    lower_add(ir, n, 0, IR_QUANTIZE, 1, &s, sizeof s)->in[0] = floats;
}

bool lower_qlinear(Ir *ir, const Node *n) {
    Parts    p;
    uint32_t floats[QLINEAR_OPERANDS], before = ir->n_layers;
    if (!read_parts(ir, n, &p) || !scales_agree(n, &p)) return false;
    for (uint32_t i = 0; i < p.q.operands; i++)
        if (!dequantized(ir, n, lower_in(ir, n, p.q.first + 3 * i), &p.from[i], &floats[i]))
            return false;
    if (!lower_floats(ir, n, &p, floats)) {
        for (uint32_t i = before; i < ir->n_layers; i++) ir->layers[i].dead = true;
        return false;
    }
    add_quantize(ir, n, &p.to);
    return true;
}
