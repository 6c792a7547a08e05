// Well-known forms of element-wise arithmetic, as exporters spell them out, become one step each.
#include <math.h>

#include "compile/expr.h"

static bool near(float a, double b) { return fabs((double)a - b) <= 1e-6 * fabs(b); }

static const ExprStep *step_of(const Expr *e, int8_t source, ChainOp op) {
    if (source < 0 || e->steps[source].op != op) return NULL;
    return &e->steps[source];
}

static bool once(const Expr *e, int8_t source) { return expr_reads(e, source) == 1; }

// a(b(x)) with both affine is affine.
static bool join_affine(Expr *e, ExprStep *s) {
    const ExprStep *in = s->op == CHAIN_AFFINE ? step_of(e, s->a, CHAIN_AFFINE) : NULL;
    if (in == NULL) return false;
    s->q += s->p * in->q;
    s->p *= in->p;
    s->a = in->a;
    return true;
}

// The factor by which u is x: 1 when it is x itself; 0 when it is something else.
static float multiple_of(const Expr *e, int8_t u, int8_t x) {
    if (u == x) return 1.0f;
    const ExprStep *s = step_of(e, u, CHAIN_AFFINE);
    return s != NULL && s->a == x && s->q == 0.0f ? s->p : 0.0f;
}

// g is factor * gate(x), for a gate whose product with x has a name of its own.
typedef struct Gate {
    ChainOp op;
    int8_t  x;
    float   factor;
} Gate;

static bool gelu_gate(const Expr *e, const ExprStep *g, Gate *out) {
    const ExprStep *erf = step_of(e, g->a, CHAIN_ERF);
    const ExprStep *half = erf != NULL ? step_of(e, erf->a, CHAIN_AFFINE) : NULL;
    if (half == NULL || g->p != g->q || !near(half->p, M_SQRT1_2) || half->q != 0.0f) return false;
    *out = (Gate){CHAIN_GELU, half->a, 2.0f * g->p};
    return true;
}

static bool hswish_clip(const Expr *e, const ExprStep *clip, float factor, Gate *out) {
    const ExprStep *shift = clip != NULL ? step_of(e, clip->a, CHAIN_AFFINE) : NULL;
    if (shift == NULL || clip->p != 0.0f || clip->q != 6.0f) return false;
    if (shift->p != 1.0f || shift->q != 3.0f) return false;
    *out = (Gate){CHAIN_HSWISH, shift->a, 6.0f * factor};
    return true;
}

static bool find_gate(const Expr *e, int8_t source, Gate *out) {
    if (source < 0 || !once(e, source)) return false;
    const ExprStep *g = &e->steps[source];
    if (g->op == CHAIN_SIGMOID) {
        *out = (Gate){CHAIN_SILU, g->a, 1.0f};
        return true;
    }
    if (g->op == CHAIN_HSIGMOID && near(g->p, 1.0 / 6) && near(g->q, 0.5)) {
        *out = (Gate){CHAIN_HSWISH, g->a, 1.0f};
        return true;
    }
    if (g->op == CHAIN_CLIP) return hswish_clip(e, g, 1.0f, out);
    if (g->op != CHAIN_AFFINE) return false;
    if (gelu_gate(e, g, out)) return true;
    return g->q == 0.0f && hswish_clip(e, step_of(e, g->a, CHAIN_CLIP), g->p, out);
}

// x * gate(x): the gate's step becomes the named operator, the product a scale.
static bool name_gated(Expr *e, ExprStep *s) {
    if (s->op != CHAIN_MUL) return false;
    for (int side = 0; side < 2; side++) {
        int8_t g = side == 0 ? s->b : s->a, u = side == 0 ? s->a : s->b;
        Gate   gate;
        if (!find_gate(e, g, &gate)) continue;
        float factor = multiple_of(e, u, gate.x) * gate.factor;
        if (factor == 0.0f) continue;
        e->steps[g] = (ExprStep){.op = (uint8_t)gate.op, .a = gate.x};
        *s = (ExprStep){.op = CHAIN_AFFINE, .a = g, .p = near(factor, 1.0) ? 1.0f : factor};
        return true;
    }
    return false;
}

// A step that changes nothing hands its source to its readers; it is swept afterwards.
static bool skip_identity(Expr *e, uint32_t at) {
    const ExprStep *s = &e->steps[at];
    if (s->op != CHAIN_COPY && !(s->op == CHAIN_AFFINE && s->p == 1.0f && s->q == 0.0f))
        return false;
    if (expr_reads(e, (int8_t)at) == 0) return false;
    for (uint32_t i = at + 1; i < e->n_steps; i++) {
        if (e->steps[i].a == (int8_t)at) e->steps[i].a = s->a;
        if (expr_two(&e->steps[i]) && e->steps[i].b == (int8_t)at) e->steps[i].b = s->a;
    }
    return true;
}

// The last step changes nothing and its source is the step before: the step before is the last.
static void trim_end(Expr *e) {
    while (e->n_steps > 1) {
        const ExprStep *s = &e->steps[e->n_steps - 1];
        bool same = s->op == CHAIN_COPY || (s->op == CHAIN_AFFINE && s->p == 1.0f && s->q == 0.0f);
        if (!same || s->a != (int8_t)(e->n_steps - 2)) return;
        e->n_steps--;
    }
}

static void sweep(Expr *e) {
    int8_t  to[CHAIN_MAX_STEPS] = {0};
    uint8_t kept = 0;
    bool    live[CHAIN_MAX_STEPS] = {false};
    for (int i = e->n_steps - 1; i >= 0; i--) {
        live[i] = live[i] || i == e->n_steps - 1;
        if (live[i] && e->steps[i].a >= 0) live[e->steps[i].a] = true;
        if (live[i] && expr_two(&e->steps[i]) && e->steps[i].b >= 0) live[e->steps[i].b] = true;
    }
    for (uint32_t i = 0; i < e->n_steps; i++) {
        if (!live[i]) continue;
        ExprStep s = e->steps[i];
        if (s.a >= 0) s.a = to[s.a];
        if (expr_two(&s) && s.b >= 0) s.b = to[s.b];
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
        if (e->n_steps > 0) sweep(e);
        trim_end(e);
    }
}
