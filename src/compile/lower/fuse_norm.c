// Layer normalization written out in elementary operators becomes one layer:
//
// d = x - mean(x); d / sqrt(mean(d * d) + epsilon), then optionally * scale + bias.
#include "compile/lower/lower.h"
#include "compile/spec.h"
#include "kernel/normalize.h"

// The layer that produces `value` by the single step `op`, and its operands; or NULL.
static const IrLayer *one_step(const Ir *ir, uint32_t value, ElementwiseOp op, uint32_t *a,
                               uint32_t *b) {
    const IrLayer *l = fuse_one_step(ir, value, op);
    if (l == NULL) return NULL;
    const ExprStep *s = &l->expr.steps[0];
    *a = l->expr.args[-1 - s->a];
    if (expr_is_binary(s)) *b = l->expr.args[-1 - s->b];
    return l;
}

// True if `value` is the mean of *x over its last dimensions, *n elements.
static bool mean_of_rows(const Ir *ir, uint32_t value, uint32_t *x, size_t *n) {
    const IrLayer *l = ir_producer(ir, value, IR_REDUCE);
    if (l == NULL) return false;
    const Reduce *f = l->spec;
    if (f->op != REDUCE_MEAN || f->inner != 1 || f->n < 2) return false;
    if (ir_type(ir, value)->rank != ir_type(ir, l->in[0])->rank) return false;
    *x = l->in[0];
    *n = f->n;
    return true;
}

typedef struct NormMatch {
    uint32_t x;
    size_t   n;
    float    epsilon;
} NormMatch;

static bool squared(const Ir *ir, uint32_t value, uint32_t d) {
    uint32_t a = IR_NONE, b = IR_NONE;
    if (one_step(ir, value, EWISE_SQUARE, &a, &b) != NULL) return a == d;
    return one_step(ir, value, EWISE_MUL, &a, &b) != NULL && a == d && b == d;
}

static bool find_norm(const Ir *ir, uint32_t value, NormMatch *f) {
    uint32_t d = IR_NONE, s = IR_NONE, v = IR_NONE, var = IR_NONE, square = IR_NONE, x = IR_NONE;
    uint32_t m = IR_NONE, none = IR_NONE, of_square = IR_NONE;
    size_t   n_square;
    if (one_step(ir, value, EWISE_DIV, &d, &s) == NULL) return false;
    if (one_step(ir, s, EWISE_SQRT, &v, &none) == NULL) return false;
    const IrLayer *shift = one_step(ir, v, EWISE_AFFINE, &var, &none);
    if (shift == NULL || shift->expr.steps[0].p != 1.0f) return false;
    if (!mean_of_rows(ir, var, &square, &n_square) || !squared(ir, square, d)) return false;
    if (one_step(ir, d, EWISE_SUB, &x, &m) == NULL) return false;
    if (!mean_of_rows(ir, m, &of_square, &f->n) || of_square != x || f->n != n_square) return false;
    f->x = x;
    f->epsilon = shift->expr.steps[0].q;
    return tensor_same_shape(ir_type(ir, x), ir_type(ir, value));
}

// The constant operand of a product or sum with `value`, if it has one element per column; else
// IR_NONE.
static uint32_t constant_row(const Ir *ir, const IrLayer *l, uint32_t value, ElementwiseOp op,
                             size_t n) {
    if (l->dead || l->kind != IR_ELEMENTWISE || l->expr.n_steps != 1 || l->expr.n_args != 2)
        return IR_NONE;
    if (l->expr.steps[0].op != op) return IR_NONE;
    uint32_t      other = l->expr.args[l->expr.args[0] == value ? 1 : 0];
    const Tensor *t = ir_type(ir, other);
    if (l->expr.args[0] != value && l->expr.args[1] != value) return IR_NONE;
    if (ir_floats(ir, other) == NULL || (size_t)tensor_count(t) != n) return IR_NONE;
    return t->rank > 0 && (size_t)t->dims[t->rank - 1] == n ? other : IR_NONE;
}

// Fuses the only use of the result, a product or sum with a constant row, into input `slot`.
static void absorb_constant_row(Ir *ir, uint32_t at, uint32_t slot, ElementwiseOp op, size_t n) {
    IrLayer *l = &ir->layers[at];
    uint32_t value = l->out[0];
    if (!ir_has_one_use(ir, value)) return;
    for (uint32_t i = at + 1; i < ir->n_layers; i++) {
        uint32_t other = constant_row(ir, &ir->layers[i], value, op, n);
        if (other == IR_NONE) continue;
        l->in[slot] = other;
        l->out[0] = ir->layers[i].out[0];
        ir->layers[i].dead = true;
        ir->values[l->out[0]].producer = at;
        return;
    }
}

void fuse_norms(Ir *ir) {
    ir_count_uses(ir);
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        IrLayer  *l = &ir->layers[i];
        NormMatch f;
        if (l->dead || l->kind != IR_ELEMENTWISE || !find_norm(ir, l->out[0], &f)) continue;
        Normalize *spec = arena_new(ir->arena, Normalize, 1);
        size_t     rows = (size_t)tensor_count(ir_type(ir, f.x)) / f.n;
        *spec = normalize_axis(NORMALIZE_VARIANCE, rows, f.n, 1, f.epsilon);
        uint32_t *in = arena_new(ir->arena, uint32_t, NORMALIZE_OPERANDS);
        for (uint32_t k = 0; k < NORMALIZE_OPERANDS; k++) in[k] = IR_NONE;
        in[0] = f.x;
        *l = (IrLayer){.kind = IR_NORMALIZE,
                       .node = l->node,
                       .n_in = NORMALIZE_OPERANDS,
                       .n_out = 1,
                       .in = in,
                       .out = l->out,
                       .spec = spec};
        absorb_constant_row(ir, i, NORMALIZE_SCALE, EWISE_MUL, f.n);
        absorb_constant_row(ir, i, NORMALIZE_BIAS, EWISE_ADD, f.n);
    }
    ir_remove_dead(ir);
}
