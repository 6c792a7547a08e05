#include <math.h>
#include <string.h>

#include "compile/lower/expr.h"

bool expr_is_binary(const ExprStep *s) { return ewise_op_operands((ElementwiseOp)s->op) == 2; }

uint32_t expr_uses(const Expr *e, int8_t source) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_steps; i++)
        n += (uint32_t)(e->steps[i].a == source) +
             (uint32_t)(expr_is_binary(&e->steps[i]) && e->steps[i].b == source);
    return n;
}

int8_t expr_result(const Expr *e) {
    return e->n_steps == 0 ? EXPR_ARG(0) : (int8_t)(e->n_steps - 1);
}

bool expr_step(Expr *e, ExprStep s) {
    if (e->n_steps == EWISE_MAX_STEPS) return false;
    e->steps[e->n_steps++] = s;
    return true;
}

// Index of a value among the arguments, appended if new; -1: full.
static int find_or_add_arg(Expr *out, uint32_t value, bool skip_first) {
    for (uint32_t i = skip_first ? 1 : 0; i < out->n_args; i++)
        if (out->args[i] == value) return (int)i;
    if (out->n_args == EWISE_MAX_ARGS) return -1;
    out->args[out->n_args] = value;
    return out->n_args++;
}

static int8_t renumbered(int8_t source, const int8_t *arg_to, uint8_t shift) {
    return source < 0 ? arg_to[-1 - source] : (int8_t)(source + shift);
}

bool expr_compose(const Expr *first, const Expr *e, uint32_t at, Expr *out) {
    *out = *first;
    if (out->n_args == 0) out->n_args = 1;
    int8_t arg_to[EWISE_MAX_ARGS];
    for (uint32_t i = 0; i < e->n_args; i++) {
        if (i == at) {
            arg_to[i] = expr_result(first);
            continue;
        }
        int k = find_or_add_arg(out, e->args[i], first->args[0] == UINT32_MAX);
        if (k < 0) return false;
        arg_to[i] = EXPR_ARG(k);
    }
    for (uint32_t i = 0; i < e->n_steps; i++) {
        ExprStep s = e->steps[i];
        s.a = renumbered(s.a, arg_to, first->n_steps);
        if (expr_is_binary(&s)) s.b = renumbered(s.b, arg_to, first->n_steps);
        if (!expr_step(out, s)) return false;
    }
    expr_simplify(out);
    ElementwiseProgram probe;
    return expr_emit(out, &probe);
}

void expr_drop_first(Expr *e) {
    for (uint32_t i = 1; i < e->n_steps; i++) {
        ExprStep s = e->steps[i];
        if (s.a >= 0) s.a = s.a == 0 ? EXPR_ARG(0) : (int8_t)(s.a - 1);
        if (expr_is_binary(&s) && s.b >= 0) s.b = s.b == 0 ? EXPR_ARG(0) : (int8_t)(s.b - 1);
        e->steps[i - 1] = s;
    }
    e->n_steps--;
}

static void last_reads(const Expr *e, int *last) {
    for (int i = 0; i < e->n_steps; i++) {
        last[i] = i;
        if (e->steps[i].a >= 0) last[e->steps[i].a] = i;
        if (expr_is_binary(&e->steps[i]) && e->steps[i].b >= 0) last[e->steps[i].b] = i;
    }
}

static uint8_t register_of(int8_t source, const uint8_t *at) {
    return source < 0 ? (uint8_t)(EWISE_ARG + (-1 - source)) : at[source];
}

bool expr_emit(const Expr *e, ElementwiseProgram *out) {
    int     last[EWISE_MAX_STEPS], holds[EWISE_REGISTERS];
    uint8_t at[EWISE_MAX_STEPS];
    last_reads(e, last);
    for (int r = 0; r < EWISE_REGISTERS; r++) holds[r] = -1;
    *out = (ElementwiseProgram){.n_steps = e->n_steps, .n_args = e->n_args};
    for (int i = 0; i < e->n_steps; i++) {
        const ExprStep *s = &e->steps[i];
        uint8_t a = register_of(s->a, at), b = expr_is_binary(s) ? register_of(s->b, at) : 0;
        int     r = 0;  // first register that is free, or last read by this step
        while (r < EWISE_REGISTERS && holds[r] >= 0 && last[holds[r]] > i) r++;
        if (r == EWISE_REGISTERS) return false;
        holds[r] = i;
        at[i] = (uint8_t)r;
        out->steps[i] = (ElementwiseStep){.op = s->op,
                                          .to = (uint8_t)r,
                                          .a = a,
                                          .b = b,
                                          .p = s->p,
                                          .q = s->q,
                                          .lo = s->lo,
                                          .hi = s->hi};
    }
    return true;
}

// Patterns that exporters write out in elementary operators become one step each.

static bool near(float a, double b) { return fabs((double)a - b) <= 1e-6 * fabs(b); }

static const ExprStep *step_of(const Expr *e, int8_t source, ElementwiseOp op) {
    if (source < 0 || e->steps[source].op != op) return NULL;
    return &e->steps[source];
}

static bool has_one_use(const Expr *e, int8_t source) { return expr_uses(e, source) == 1; }

// An affine step of an affine step is one affine step.
static bool join_affine(Expr *e, ExprStep *s) {
    const ExprStep *in = s->op == EWISE_AFFINE ? step_of(e, s->a, EWISE_AFFINE) : NULL;
    if (in == NULL) return false;
    s->q += s->p * in->q;
    s->p *= in->p;
    s->a = in->a;
    return true;
}

// The factor p if u = p * x, 1 if u is x, else 0.
static float multiple_of(const Expr *e, int8_t u, int8_t x) {
    if (u == x) return 1.0f;
    const ExprStep *s = step_of(e, u, EWISE_AFFINE);
    return s != NULL && s->a == x && s->q == 0.0f ? s->p : 0.0f;
}

// A source that equals factor * gate(x), where x * gate(x) is operator `op`.
typedef struct Gate {
    ElementwiseOp op;
    int8_t        x;
    float         factor;
} Gate;

static bool gelu_gate(const Expr *e, const ExprStep *g, Gate *out) {
    const ExprStep *erf = step_of(e, g->a, EWISE_ERF);
    const ExprStep *half = erf != NULL ? step_of(e, erf->a, EWISE_AFFINE) : NULL;
    if (half == NULL || g->p != g->q || !near(half->p, M_SQRT1_2) || half->q != 0.0f) return false;
    *out = (Gate){EWISE_GELU, half->a, 2.0f * g->p};
    return true;
}

// tanh((x + 0.044715 x^3) sqrt(2 / pi))
static bool gelu_tanh_gate(const Expr *e, const ExprStep *g, Gate *out) {
    const ExprStep *tanh = step_of(e, g->a, EWISE_TANH);
    const ExprStep *root = tanh != NULL ? step_of(e, tanh->a, EWISE_AFFINE) : NULL;
    const ExprStep *sum = root != NULL ? step_of(e, root->a, EWISE_ADD) : NULL;
    if (sum == NULL || g->p != g->q || root->q != 0.0f || !near(root->p, M_SQRT1_2 * M_2_SQRTPI))
        return false;
    for (int side = 0; side < 2; side++) {
        int8_t          x = side == 0 ? sum->a : sum->b;
        const ExprStep *part = step_of(e, side == 0 ? sum->b : sum->a, EWISE_AFFINE);
        const ExprStep *cube = part != NULL ? step_of(e, part->a, EWISE_CUBE) : NULL;
        if (cube == NULL || cube->a != x || part->q != 0.0f || !near(part->p, 0.044715)) continue;
        *out = (Gate){EWISE_GELU_TANH, x, 2.0f * g->p};
        return true;
    }
    return false;
}

static bool hswish_clip(const Expr *e, const ExprStep *clip, float factor, Gate *out) {
    const ExprStep *shift = clip != NULL ? step_of(e, clip->a, EWISE_AFFINE) : NULL;
    if (shift == NULL || clip->p != 0.0f || clip->q != 6.0f) return false;
    if (shift->p != 1.0f || shift->q != 3.0f) return false;
    *out = (Gate){EWISE_HSWISH, shift->a, 6.0f * factor};
    return true;
}

static bool find_gate(const Expr *e, int8_t source, Gate *out) {
    if (source < 0 || !has_one_use(e, source)) return false;
    const ExprStep *g = &e->steps[source];
    if (g->op == EWISE_SIGMOID) {
        *out = (Gate){EWISE_SILU, g->a, 1.0f};
        return true;
    }
    if (g->op == EWISE_HSIGMOID && near(g->p, 1.0 / 6) && near(g->q, 0.5)) {
        *out = (Gate){EWISE_HSWISH, g->a, 1.0f};
        return true;
    }
    if (g->op == EWISE_CLIP) return hswish_clip(e, g, 1.0f, out);
    if (g->op != EWISE_AFFINE) return false;
    if (gelu_gate(e, g, out) || gelu_tanh_gate(e, g, out)) return true;
    return g->q == 0.0f && hswish_clip(e, step_of(e, g->a, EWISE_CLIP), g->p, out);
}

// x * gate(x): the gate's step becomes the operator, the product becomes a scale.
static bool name_gated(Expr *e, ExprStep *s) {
    if (s->op != EWISE_MUL) return false;
    for (int side = 0; side < 2; side++) {
        int8_t g = side == 0 ? s->b : s->a, u = side == 0 ? s->a : s->b;
        Gate   gate;
        if (!find_gate(e, g, &gate)) continue;
        float factor = multiple_of(e, u, gate.x) * gate.factor;
        if (factor == 0.0f) continue;
        e->steps[g] = (ExprStep){.op = (uint8_t)gate.op, .a = gate.x};
        *s = (ExprStep){.op = EWISE_AFFINE, .a = g, .p = near(factor, 1.0) ? 1.0f : factor};
        return true;
    }
    return false;
}

// Uses of an identity step read its source instead; the step is then dead.
static bool skip_identity(Expr *e, uint32_t at) {
    const ExprStep *s = &e->steps[at];
    if (s->op != EWISE_COPY && !(s->op == EWISE_AFFINE && s->p == 1.0f && s->q == 0.0f))
        return false;
    if (expr_uses(e, (int8_t)at) == 0) return false;
    for (uint32_t i = at + 1; i < e->n_steps; i++) {
        if (e->steps[i].a == (int8_t)at) e->steps[i].a = s->a;
        if (expr_is_binary(&e->steps[i]) && e->steps[i].b == (int8_t)at) e->steps[i].b = s->a;
    }
    return true;
}

// Drops an identity at the end if its source is the step before it.
static void drop_identity_end(Expr *e) {
    while (e->n_steps > 1) {
        const ExprStep *s = &e->steps[e->n_steps - 1];
        bool same = s->op == EWISE_COPY || (s->op == EWISE_AFFINE && s->p == 1.0f && s->q == 0.0f);
        if (!same || s->a != (int8_t)(e->n_steps - 2)) return;
        e->n_steps--;
    }
}

static void remove_dead_steps(Expr *e) {
    int8_t  to[EWISE_MAX_STEPS] = {0};
    uint8_t kept = 0;
    bool    live[EWISE_MAX_STEPS] = {false};
    for (int i = e->n_steps - 1; i >= 0; i--) {
        live[i] = live[i] || i == e->n_steps - 1;
        if (live[i] && e->steps[i].a >= 0) live[e->steps[i].a] = true;
        if (live[i] && expr_is_binary(&e->steps[i]) && e->steps[i].b >= 0)
            live[e->steps[i].b] = true;
    }
    for (uint32_t i = 0; i < e->n_steps; i++) {
        if (!live[i]) continue;
        ExprStep s = e->steps[i];
        if (s.a >= 0) s.a = to[s.a];
        if (expr_is_binary(&s) && s.b >= 0) s.b = to[s.b];
        to[i] = (int8_t)kept;
        e->steps[kept++] = s;
    }
    e->n_steps = kept;
}

void expr_simplify(Expr *e) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < e->n_steps; i++)
            changed |=
                join_affine(e, &e->steps[i]) || name_gated(e, &e->steps[i]) || skip_identity(e, i);
        if (e->n_steps > 0) remove_dead_steps(e);
        drop_identity_end(e);
    }
}
