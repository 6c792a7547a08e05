// Residual connections of quantised networks: a sum of a convolution's bytes and other bytes is
// computed where the convolution stores them.
#include <math.h>

#include "base/err.h"
#include "compile/lower/lower.h"
#include "compile/spec.h"

// arg 0 + arg 1, then perhaps a clip.
static bool is_sum(const IrLayer *l) {
    if (l->dead || l->kind != IR_BYTE_ELEMENTWISE || l->out[1] != IR_NONE) return false;
    const Expr *e = &((const ByteElementwiseSpec *)l->spec)->expr;
    if (e->n_args != 2 || e->n_steps < 1 || e->n_steps > 2 || e->steps[0].op != EWISE_ADD)
        return false;
    const int8_t a = e->steps[0].a, b = e->steps[0].b;
    if ((a != EXPR_ARG(0) || b != EXPR_ARG(1)) && (a != EXPR_ARG(1) || b != EXPR_ARG(0)))
        return false;
    return e->n_steps == 1 || (e->steps[1].op == EWISE_CLIP && e->steps[1].a == 0);
}

static bool same_bytes(const Ir *ir, const IrLayer *sum) {
    const Tensor *y = ir_type(ir, sum->out[0]);
    for (uint32_t i = 0; i < 2; i++) {
        const Tensor *x = ir_type(ir, sum->in[i]);
        if ((x->dtype != DT_U8 && x->dtype != DT_I8) || !tensor_same_shape(x, y)) return false;
    }
    return true;
}

// The convolution that only the sum reads; or IR_NONE.
static uint32_t convolution_of(const Ir *ir, uint32_t value) {
    const uint32_t at = ir->values[value].producer;
    if (at == IR_NONE || !ir_has_one_use(ir, value)) return IR_NONE;
    const IrLayer *l = &ir->layers[at];
    if (l->dead || l->kind != IR_INT8_CONV || l->n_in != 1) return IR_NONE;
    return ((const Int8Spec *)l->spec)->kind == INT8_BYTES ? at : IR_NONE;
}

// The operand that is computed last, of those that are convolutions; 2: none is.
static uint32_t operand_of(const Ir *ir, const IrLayer *sum) {
    const uint32_t a = convolution_of(ir, sum->in[0]), b = convolution_of(ir, sum->in[1]);
    if (a == IR_NONE && b == IR_NONE) return 2;
    if (a == IR_NONE || b == IR_NONE) return a == IR_NONE;
    return b > a;
}

// The convolution takes the place of the sum: what it adds is computed before.
static void fuse_sum(Ir *ir, IrLayer *sum, uint32_t i) {
    const ByteElementwiseSpec *from = sum->spec;
    const ExprStep            *clip = from->expr.n_steps == 2 ? &from->expr.steps[1] : NULL;
    const uint32_t             added = sum->in[1 - i], out = sum->out[0];
    IrLayer                   *conv = &ir->layers[ir->values[sum->in[i]].producer];
    Int8Spec                  *s = arena_new(ir->arena, Int8Spec, 1);
    Int8Residual              *r = arena_new(ir->arena, Int8Residual, 1);
    *r = int8_residual(&from->from[i], &from->from[1 - i], &from->to,
                       clip != NULL ? clip->p : -INFINITY, clip != NULL ? clip->q : INFINITY);
    *s = *(const Int8Spec *)conv->spec;
    s->residual = r;
    *sum = *conv;
    sum->spec = s;
    sum->n_in = 2;
    sum->in = arena_new(ir->arena, uint32_t, 2);
    sum->in[0] = conv->in[0];
    sum->in[1] = added;
    sum->out = arena_new(ir->arena, uint32_t, 1);
    sum->out[0] = out;
    conv->dead = true;
}

void fuse_residuals(Ir *ir) {
    ir_count_uses(ir);
    for (uint32_t at = 0; at < ir->n_layers; at++) {
        IrLayer *l = &ir->layers[at];
        if (!is_sum(l) || !same_bytes(ir, l)) continue;
        const uint32_t i = operand_of(ir, l);
        if (i == 2) continue;
        fuse_sum(ir, l, i);
        ir->values[l->out[0]].producer = at;
    }
    ir_remove_dead(ir);
}
