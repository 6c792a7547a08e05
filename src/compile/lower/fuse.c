// Fusion passes: element-wise layers, per-channel scales, growing concatenations.
//
// An element-wise layer is merged into the producer of one of its arguments if it is the only use.
#include <math.h>

#include "compile/lower/lower.h"
#include "compile/spec.h"

const IrLayer *fuse_one_step(const Ir *ir, uint32_t value, ElementwiseOp op) {
    const IrLayer *l = ir_producer(ir, value, IR_ELEMENTWISE);
    return l != NULL && l->expr.n_steps == 1 && l->expr.steps[0].op == op ? l : NULL;
}

// In an epilogue, every other argument must be full-size, per channel or a scalar.
static bool args_fit(const Ir *ir, const IrLayer *host, const Expr *e, uint32_t at) {
    const Tensor   *out = ir_type(ir, host->out[0]);
    int32_t         axis = spec_channel_axis(host->kind, out);
    ElementwiseMode mode;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (i != at && !spec_arg_mode(ir_type(ir, e->args[i]), out, axis, &mode)) return false;
    return true;
}

static bool can_host(const Ir *ir, const IrLayer *l, uint32_t at) {
    uint32_t       v = l->expr.args[at];
    const IrValue *value = &ir->values[v];
    if (value->producer == IR_NONE || !ir_has_one_use(ir, v)) return false;
    const IrLayer *host = &ir->layers[value->producer];
    if (host->dead || host->n_out != 1) return false;
    if (!tensor_same_shape(&value->type, ir_type(ir, l->out[0]))) return false;
    if (host->kind == IR_ELEMENTWISE) return true;
    return ir_takes_epilogue(host->kind) && args_fit(ir, host, &l->expr, at);
}

static bool reads(const IrLayer *l, uint32_t value) {
    for (uint32_t i = 0; i < ir_operand_count(l); i++)
        if (ir_operand(l, i) == value) return true;
    return false;
}

// Two uses of a common operand become one; the value between both layers has none left.
static void count_merged_uses(Ir *ir, const IrLayer *host, const IrLayer *l) {
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        uint32_t v = l->expr.args[i];
        if (reads(host, v) || v == host->out[0]) ir->values[v].uses--;
    }
}

// The merged layer takes the later position, where all its operands are computed.
static bool merge_into(Ir *ir, uint32_t at, uint32_t arg) {
    IrLayer *l = &ir->layers[at], *host = &ir->layers[ir->values[l->expr.args[arg]].producer];
    Expr     both;
    if (!expr_compose(&host->expr, &l->expr, arg, &both)) return false;
    count_merged_uses(ir, host, l);
    IrLayer now = *host;
    now.out = l->out;
    now.expr = both;
    host->dead = true;
    *l = now;
    return true;
}

// Prefers heavy producers, then the latest, which shortens lifetimes.
static bool merge_best(Ir *ir, uint32_t at) {
    const IrLayer *l = &ir->layers[at];
    uint32_t       best = IR_NONE, best_maker = 0;
    for (uint32_t i = 0; i < l->expr.n_args; i++) {
        if (!can_host(ir, l, i)) continue;
        uint32_t producer = ir->values[l->expr.args[i]].producer;
        bool     heavy = ir_takes_epilogue(ir->layers[producer].kind);
        uint32_t rank = producer + (heavy ? ir->n_layers : 0);
        if (best == IR_NONE || rank > best_maker) best = i, best_maker = rank;
    }
    return best != IR_NONE && merge_into(ir, at, best);
}

void fuse_elementwise(Ir *ir) {
    ir_count_uses(ir);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < ir->n_layers; i++)
            while (!ir->layers[i].dead && ir->layers[i].kind == IR_ELEMENTWISE && merge_best(ir, i))
                changed = true;
    }
    ir_remove_dead(ir);
}

// A per-channel scale or shift at the start of an epilogue is fused into weights and bias.

static float *channel_array(Ir *ir, float **at, uint32_t n, float value) {
    if (*at != NULL) return *at;
    *at = arena_new(ir->arena, float, n);
    for (uint32_t i = 0; i < n; i++) (*at)[i] = value;
    return *at;
}

static void multiply(Ir *ir, OutputChannels *c, const float *x, uint32_t stride, float sign_power) {
    float *scale = channel_array(ir, &c->scale, c->n, 1),
          *shift = channel_array(ir, &c->shift, c->n, 0);
    for (uint32_t i = 0; i < c->n; i++) {
        float f = sign_power < 0 ? 1 / x[i * stride] : x[i * stride];
        scale[i] *= f;
        shift[i] *= f;
    }
}

static void add(Ir *ir, OutputChannels *c, const float *x, uint32_t stride, float sign) {
    float *shift = channel_array(ir, &c->shift, c->n, 0);
    for (uint32_t i = 0; i < c->n; i++) shift[i] += sign * x[i * stride];
}

// The constant operand of the first step, a scalar (stride 0) or per channel (stride 1); or NULL.
static const float *channel_constant(const Ir *ir, const IrLayer *l, int8_t source,
                                     uint32_t *stride) {
    if (source >= 0 || source == EXPR_ARG(0)) return NULL;
    uint32_t        v = l->expr.args[-1 - source];
    const Tensor   *out = ir_type(ir, l->out[0]);
    ElementwiseMode mode;
    if (!spec_arg_mode(ir_type(ir, v), out, spec_channel_axis(l->kind, out), &mode)) return NULL;
    // One pixel of one image: a full-size argument is also per channel.
    bool along =
        mode == EWISE_PER_LANE ||
        (mode == EWISE_CONTIGUOUS && tensor_count(out) == ((const OutputChannels *)l->spec)->n);
    if (!along && mode != EWISE_SCALAR) return NULL;
    *stride = mode == EWISE_SCALAR ? 0 : 1;
    return ir_floats(ir, v);
}

static bool all_normal(const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!isnormal(1 / x[i])) return false;
    return true;
}

// True if step 0 was fused into the weights.
static bool fuse_first_step(Ir *ir, IrLayer *l) {
    OutputChannels *c = l->spec;
    const ExprStep *s = &l->expr.steps[0];
    if (expr_uses(&l->expr, EXPR_ARG(0)) != 1) return false;
    if (s->op == EWISE_AFFINE && s->a == EXPR_ARG(0)) {
        float p = s->p, q = s->q;
        multiply(ir, c, &p, 0, 1);
        add(ir, c, &q, 0, 1);
        return true;
    }
    bool right = s->a == EXPR_ARG(0);
    if (!expr_is_binary(s) || (!right && s->b != EXPR_ARG(0))) return false;
    uint32_t     stride = 0;
    const float *x = channel_constant(ir, l, right ? s->b : s->a, &stride);
    if (x == NULL) return false;
    switch (s->op) {
    case EWISE_MUL: multiply(ir, c, x, stride, 1); return true;
    case EWISE_ADD: add(ir, c, x, stride, 1); return true;
    case EWISE_SUB:
        if (right) add(ir, c, x, stride, -1);
        return right;
    case EWISE_DIV:
        if (!right || !all_normal(x, stride == 0 ? 1 : c->n)) return false;
        multiply(ir, c, x, stride, -1);
        return true;
    default: return false;
    }
}

// Removes arguments without uses.
static void drop_unused_args(Expr *e) {
    for (uint32_t i = 1; i < e->n_args;) {
        if (expr_uses(e, EXPR_ARG(i)) > 0) {
            i++;
            continue;
        }
        for (uint32_t k = i + 1; k < e->n_args; k++) e->args[k - 1] = e->args[k];
        for (uint32_t k = 0; k < e->n_steps; k++) {
            if (e->steps[k].a < EXPR_ARG(i)) e->steps[k].a++;
            if (expr_is_binary(&e->steps[k]) && e->steps[k].b < EXPR_ARG(i)) e->steps[k].b++;
        }
        e->n_args--;
    }
}

static bool has_channel_weights(IrKind k) {
    return k == IR_CONV || k == IR_DEPTHWISE || k == IR_DECONV || k == IR_GEMM;
}

void fuse_channel_scale(Ir *ir) {
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        IrLayer *l = &ir->layers[i];
        if (l->dead || !has_channel_weights(l->kind)) continue;
        while (l->expr.n_steps > 0 && fuse_first_step(ir, l)) expr_drop_first(&l->expr);
        drop_unused_args(&l->expr);
    }
    ir_remove_dead(ir);
}

// A concatenation that starts with all inputs of an earlier one reads that one's result instead: a
// growing list of features (DenseNet) needs one buffer and no copies.

static bool begins_with(const Ir *ir, const IrLayer *l, const IrLayer *first) {
    if (first->dead || first->kind != IR_CONCAT || first->n_in < 2 || first->n_in >= l->n_in)
        return false;
    for (uint32_t i = 0; i < first->n_in; i++)
        if (first->in[i] != l->in[i]) return false;
    return spec_concat_axis(ir, first) == spec_concat_axis(ir, l);
}

static void reuse_prefix(IrLayer *l, const IrLayer *first) {
    uint32_t gone = first->n_in - 1;
    l->in[0] = first->out[0];
    for (uint32_t i = 1; i + gone < l->n_in; i++) l->in[i] = l->in[i + gone];
    l->n_in -= gone;
}

enum { LOOK_BACK = 512 };  // layers; growing lists grow in small steps

// Last to first, so that later concatenations still list all their inputs.
void fuse_concats(Ir *ir) {
    for (uint32_t i = ir->n_layers; i-- > 0;) {
        IrLayer *l = &ir->layers[i], *best = NULL;
        if (l->dead || l->kind != IR_CONCAT) continue;
        for (uint32_t k = i > LOOK_BACK ? i - LOOK_BACK : 0; k < i; k++)
            if (begins_with(ir, l, &ir->layers[k]) &&
                (best == NULL || ir->layers[k].n_in > best->n_in))
                best = &ir->layers[k];
        if (best != NULL) reuse_prefix(l, best);
    }
    ir_count_uses(ir);
}
