// A scale or a shift per column right behind the sums becomes part of weights and bias.
#include <math.h>

#include "compile/fuse.h"
#include "compile/spec.h"

static float *column_array(Ir *ir, float **at, uint32_t n, float value) {
    if (*at != NULL) return *at;
    *at = arena_new(ir->arena, float, n);
    for (uint32_t i = 0; i < n; i++) (*at)[i] = value;
    return *at;
}

static void multiply(Ir *ir, Columns *c, const float *x, uint32_t stride, float sign_power) {
    float *scale = column_array(ir, &c->scale, c->n, 1),
          *shift = column_array(ir, &c->shift, c->n, 0);
    for (uint32_t i = 0; i < c->n; i++) {
        float f = sign_power < 0 ? 1 / x[i * stride] : x[i * stride];
        scale[i] *= f;
        shift[i] *= f;
    }
}

static void add(Ir *ir, Columns *c, const float *x, uint32_t stride, float sign) {
    float *shift = column_array(ir, &c->shift, c->n, 0);
    for (uint32_t i = 0; i < c->n; i++) shift[i] += sign * x[i * stride];
}

// The constant on the other side of the first step, one number or one per column; or NULL.
static const float *other_side(const Ir *ir, const IrLayer *l, int8_t source, uint32_t *stride) {
    if (source >= 0 || source == EXPR_ARG(0)) return NULL;
    uint32_t      v = l->expr.args[-1 - source];
    const Tensor *out = ir_type(ir, l->out[0]);
    ChainMode     mode;
    if (!spec_arg_mode(ir_type(ir, v), out, spec_channel_axis(l->kind, out), &mode)) return NULL;
    // One pixel of one image: the argument has as many numbers as there are columns either way.
    bool along = mode == CHAIN_LANES ||
                 (mode == CHAIN_EACH && tensor_count(out) == ((const Columns *)l->spec)->n);
    if (!along && mode != CHAIN_ONE) return NULL;
    *stride = mode == CHAIN_ONE ? 0 : 1;
    return ir_floats(ir, v);
}

static bool all_normal(const float *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!isnormal(1 / x[i])) return false;
    return true;
}

// True when step 0 went into the columns.
static bool absorb(Ir *ir, IrLayer *l) {
    Columns        *c = l->spec;
    const ExprStep *s = &l->expr.steps[0];
    if (expr_reads(&l->expr, EXPR_ARG(0)) != 1) return false;
    if (s->op == CHAIN_AFFINE && s->a == EXPR_ARG(0)) {
        float p = s->p, q = s->q;
        multiply(ir, c, &p, 0, 1);
        add(ir, c, &q, 0, 1);
        return true;
    }
    bool right = s->a == EXPR_ARG(0);
    if (!expr_two(s) || (!right && s->b != EXPR_ARG(0))) return false;
    uint32_t     stride = 0;
    const float *x = other_side(ir, l, right ? s->b : s->a, &stride);
    if (x == NULL) return false;
    switch (s->op) {
    case CHAIN_MUL: multiply(ir, c, x, stride, 1); return true;
    case CHAIN_ADD: add(ir, c, x, stride, 1); return true;
    case CHAIN_SUB:
        if (right) add(ir, c, x, stride, -1);
        return right;
    case CHAIN_DIV:
        if (!right || !all_normal(x, stride == 0 ? 1 : c->n)) return false;
        multiply(ir, c, x, stride, -1);
        return true;
    default: return false;
    }
}

// Arguments that no step reads any more go.
static void drop_args(Expr *e) {
    for (uint32_t i = 1; i < e->n_args;) {
        if (expr_reads(e, EXPR_ARG(i)) > 0) {
            i++;
            continue;
        }
        for (uint32_t k = i + 1; k < e->n_args; k++) e->args[k - 1] = e->args[k];
        for (uint32_t k = 0; k < e->n_steps; k++) {
            if (e->steps[k].a < EXPR_ARG(i)) e->steps[k].a++;
            if (expr_two(&e->steps[k]) && e->steps[k].b < EXPR_ARG(i)) e->steps[k].b++;
        }
        e->n_args--;
    }
}

static bool has_columns(IrKind k) {
    return k == IR_CONV || k == IR_DEPTH || k == IR_DECONV || k == IR_GEMM;
}

void fuse_columns(Ir *ir) {
    for (uint32_t i = 0; i < ir->n_layers; i++) {
        IrLayer *l = &ir->layers[i];
        if (l->dead || !has_columns(l->kind)) continue;
        while (l->expr.n_steps > 0 && absorb(ir, l)) expr_drop_first(&l->expr);
        drop_args(&l->expr);
    }
    ir_sweep(ir);
}
