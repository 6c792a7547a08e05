#include "compile/expr.h"

#include <math.h>
#include <string.h>

bool expr_two(const ExprStep *s) { return chain_op_operands((ChainOp)s->op) == 2; }

uint32_t expr_reads(const Expr *e, int8_t source) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_steps; i++)
        n += (uint32_t)(e->steps[i].a == source) +
             (uint32_t)(expr_two(&e->steps[i]) && e->steps[i].b == source);
    return n;
}

int8_t expr_result(const Expr *e) {
    return e->n_steps == 0 ? EXPR_ARG(0) : (int8_t)(e->n_steps - 1);
}

bool expr_step(Expr *e, ExprStep s) {
    if (e->n_steps == CHAIN_MAX_STEPS) return false;
    e->steps[e->n_steps++] = s;
    return true;
}

// The argument of out that stands for a value, added when it is new; -1 when there is no room.
static int find_arg(Expr *out, uint32_t value, bool fresh_zero) {
    for (uint32_t i = fresh_zero ? 1 : 0; i < out->n_args; i++)
        if (out->args[i] == value) return (int)i;
    if (out->n_args == CHAIN_MAX_ARGS) return -1;
    out->args[out->n_args] = value;
    return out->n_args++;
}

static int8_t moved(int8_t source, const int8_t *arg_to, uint8_t shift) {
    return source < 0 ? arg_to[-1 - source] : (int8_t)(source + shift);
}

bool expr_join(const Expr *first, const Expr *e, uint32_t at, Expr *out) {
    *out = *first;
    if (out->n_args == 0) out->n_args = 1;
    int8_t arg_to[CHAIN_MAX_ARGS];
    for (uint32_t i = 0; i < e->n_args; i++) {
        if (i == at) {
            arg_to[i] = expr_result(first);
            continue;
        }
        int k = find_arg(out, e->args[i], first->args[0] == UINT32_MAX);
        if (k < 0) return false;
        arg_to[i] = EXPR_ARG(k);
    }
    for (uint32_t i = 0; i < e->n_steps; i++) {
        ExprStep s = e->steps[i];
        s.a = moved(s.a, arg_to, first->n_steps);
        if (expr_two(&s)) s.b = moved(s.b, arg_to, first->n_steps);
        if (!expr_step(out, s)) return false;
    }
    expr_simplify(out);
    Chain probe;
    return expr_emit(out, &probe);
}

void expr_drop_first(Expr *e) {
    for (uint32_t i = 1; i < e->n_steps; i++) {
        ExprStep s = e->steps[i];
        if (s.a >= 0) s.a = s.a == 0 ? EXPR_ARG(0) : (int8_t)(s.a - 1);
        if (expr_two(&s) && s.b >= 0) s.b = s.b == 0 ? EXPR_ARG(0) : (int8_t)(s.b - 1);
        e->steps[i - 1] = s;
    }
    e->n_steps--;
}

static void last_reads(const Expr *e, int *last) {
    for (int i = 0; i < e->n_steps; i++) {
        last[i] = i;
        if (e->steps[i].a >= 0) last[e->steps[i].a] = i;
        if (expr_two(&e->steps[i]) && e->steps[i].b >= 0) last[e->steps[i].b] = i;
    }
}

static uint8_t place(int8_t source, const uint8_t *at) {
    return source < 0 ? (uint8_t)(CHAIN_ARG + (-1 - source)) : at[source];
}

bool expr_emit(const Expr *e, Chain *out) {
    int     last[CHAIN_MAX_STEPS], holds[CHAIN_REGISTERS];
    uint8_t at[CHAIN_MAX_STEPS];
    last_reads(e, last);
    for (int r = 0; r < CHAIN_REGISTERS; r++) holds[r] = -1;
    *out = (Chain){.n_steps = e->n_steps, .n_args = e->n_args};
    for (int i = 0; i < e->n_steps; i++) {
        const ExprStep *s = &e->steps[i];
        uint8_t         a = place(s->a, at), b = expr_two(s) ? place(s->b, at) : 0;
        int             r = 0;  // a register whose number was read for the last time, even here
        while (r < CHAIN_REGISTERS && holds[r] >= 0 && last[holds[r]] > i) r++;
        if (r == CHAIN_REGISTERS) return false;
        holds[r] = i;
        at[i] = (uint8_t)r;
        out->steps[i] = (ChainStep){.op = s->op,
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
