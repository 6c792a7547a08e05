// Fusing, simplifying and emitting element-wise arithmetic never changes what it computes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "compile/lower/expr.h"
#include "tests/runner.h"

#define UNKNOWN UINT32_MAX

enum { ROUNDS = 20000, SAMPLES = 4 };

// Operators that expr_simplify matches, and some that it must not change.
static double one_step(uint8_t op, double p, double q, double a, double b) {
    switch (op) {
    case EWISE_COPY: return a;
    case EWISE_ADD: return a + b;
    case EWISE_SUB: return a - b;
    case EWISE_MUL: return a * b;
    case EWISE_MAX: return fmax(a, b);
    case EWISE_CLIP: return fmin(fmax(a, p), q);
    case EWISE_AFFINE: return a * p + q;
    case EWISE_ERF: return erf(a);
    case EWISE_TANH: return tanh(a);
    case EWISE_SIGMOID: return 1 / (1 + exp(-a));
    case EWISE_HSIGMOID: return fmin(fmax(a * p + q, 0), 1);
    case EWISE_HSWISH: return a * fmin(fmax(a / 6 + 0.5, 0), 1);
    case EWISE_SILU: return a / (1 + exp(-a));
    case EWISE_GELU: return a / 2 * (1 + erf(a * M_SQRT1_2));
    default: fail_msg("operator %u is not expected here", op); return 0;
    }
}

static double value_of(int8_t source, const double *args, const double *steps) {
    return source < 0 ? args[-1 - source] : steps[source];
}

static double eval(const Expr *e, const double *args) {
    double x[EWISE_MAX_STEPS] = {args[0]};
    for (int i = 0; i < e->n_steps; i++) {
        const ExprStep *s = &e->steps[i];
        assert_true(s->a < i && -1 - s->a < e->n_args);
        double b = expr_is_binary(s) ? value_of(s->b, args, x) : 0;
        x[i] = one_step(s->op, (double)s->p, (double)s->q, value_of(s->a, args, x), b);
    }
    return e->n_steps == 0 ? args[0] : x[e->n_steps - 1];
}

static double chain_operand(uint8_t source, const double *args, const double *registers) {
    assert_true(source < EWISE_REGISTERS || source >= EWISE_ARG);
    return source < EWISE_REGISTERS ? registers[source] : args[source - EWISE_ARG];
}

static double eval_chain(const ElementwiseProgram *c, const double *args) {
    double r[EWISE_REGISTERS] = {NAN, NAN, NAN, NAN}, last = args[0];
    for (uint32_t i = 0; i < c->n_steps; i++) {
        const ElementwiseStep *s = &c->steps[i];
        bool                   two = ewise_op_operands((ElementwiseOp)s->op) == 2;
        double                 b = two ? chain_operand(s->b, args, r) : 0;
        last = one_step(s->op, (double)s->p, (double)s->q, chain_operand(s->a, args, r), b);
        r[s->to] = last;
    }
    return last;
}

static void same_number(double got, double want, const char *what, uint32_t round) {
    if (!(fabs(got - want) <= 1e-5 * fmax(1, fabs(want))))
        fail_msg("%s, round %u: %.9g, not %.9g", what, round, got, want);
}

static void random_args(Rng *r, double *args) {
    for (int i = 0; i < EWISE_MAX_ARGS; i++) args[i] = 3 * rng_normal(r);
}

static int8_t random_source(const Expr *e, Rng *r) {
    uint64_t k = rng_below(r, (uint64_t)e->n_args + 2U * e->n_steps);
    if (k < e->n_args) return EXPR_ARG(k);
    int8_t at = (int8_t)((k - e->n_args) / 2);
    return (k & 1) != 0 ? at : (int8_t)(e->n_steps - 1);  // deep ones more often
}

static ExprStep random_step(const Expr *e, Rng *r) {
    static const ExprStep kinds[] = {
        {.op = EWISE_COPY},
        {.op = EWISE_ADD},
        {.op = EWISE_SUB},
        {.op = EWISE_MUL},
        {.op = EWISE_MUL},
        {.op = EWISE_MUL},
        {.op = EWISE_MAX},
        {.op = EWISE_AFFINE, .p = 1},
        {.op = EWISE_AFFINE, .p = 1, .q = 3},
        {.op = EWISE_AFFINE, .p = 0.5f},
        {.op = EWISE_AFFINE, .p = 0.5f, .q = 0.5f},
        {.op = EWISE_AFFINE, .p = (float)M_SQRT1_2},
        {.op = EWISE_AFFINE, .p = 1.0f / 6},
        {.op = EWISE_CLIP, .p = 0, .q = 6},
        {.op = EWISE_CLIP, .p = -1, .q = 1},
        {.op = EWISE_ERF},
        {.op = EWISE_TANH},
        {.op = EWISE_SIGMOID},
        {.op = EWISE_HSIGMOID, .p = 1.0f / 6, .q = 0.5f},
        {.op = EWISE_HSIGMOID, .p = 0.2f, .q = 0.5f},
    };
    ExprStep s = kinds[rng_below(r, sizeof kinds / sizeof *kinds)];
    s.a = random_source(e, r);
    if (expr_is_binary(&s)) s.b = random_source(e, r);
    return s;
}

static Expr random_expr(Rng *r, uint64_t most_steps, uint32_t first_value) {
    Expr     e = {.n_args = (uint8_t)(1 + rng_below(r, 3))};
    uint64_t n = rng_below(r, most_steps + 1);
    for (uint32_t i = 0; i < e.n_args; i++) e.args[i] = first_value + i;
    for (uint64_t i = 0; i < n; i++) assert_true(expr_step(&e, random_step(&e, r)));
    return e;
}

static bool tame(const Expr *e, const double *args) { return fabs(eval(e, args)) < 1e6; }

static void simplified_is_the_same(void **state) {
    (void)state;
    Rng r = {7};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        Expr e = random_expr(&r, EWISE_MAX_STEPS, 0), less = e;
        expr_simplify(&less);
        assert_true(less.n_steps <= e.n_steps && less.n_args == e.n_args);
        for (int k = 0; k < SAMPLES; k++) {
            double args[EWISE_MAX_ARGS];
            random_args(&r, args);
            if (tame(&e, args)) same_number(eval(&less, args), eval(&e, args), "simplified", i);
        }
    }
}

static void emitted_is_the_same(void **state) {
    (void)state;
    Rng      r = {8};
    uint32_t fits = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        Expr               e = random_expr(&r, EWISE_MAX_STEPS, 0);
        ElementwiseProgram c;
        if (!expr_emit(&e, &c)) continue;
        fits++;
        assert_int_equal(c.n_steps, e.n_steps);
        assert_int_equal(c.n_args, e.n_args);
        double args[EWISE_MAX_ARGS];
        random_args(&r, args);
        double want = eval(&e, args);
        if (isfinite(want)) assert_true(eval_chain(&c, args) == want);
    }
    assert_true(fits > ROUNDS / 4 && fits < ROUNDS);
}

// Values of the composed expression's arguments, numbered as in join_two.
static void joined_args(const Expr *both, const double *of_value, double first, double *args) {
    for (uint32_t i = 0; i < both->n_args; i++)
        args[i] = both->args[i] == UNKNOWN ? first : of_value[both->args[i]];
}

// Values 0 to 2 are arguments of the first expression, 1 to 3 of the second. Behind a heavy layer
// argument 0 of the first is the layer's own result, which is no value.
static void join_two(Rng *r, uint32_t round, bool heavy) {
    Expr first = random_expr(r, 6, 0), e = random_expr(r, 8, 1), both;
    if (heavy) first.args[0] = UNKNOWN;
    if (heavy && rng_below(r, 4) == 0) first = (Expr){.n_args = 1, .args = {UNKNOWN}};
    if (e.n_steps == 0) return;  // nothing to compose
    uint32_t at = (uint32_t)rng_below(r, e.n_args);
    e.args[at] = 9;
    if (!expr_compose(&first, &e, at, &both)) return;
    double of_value[10], first_args[EWISE_MAX_ARGS], e_args[EWISE_MAX_ARGS], args[EWISE_MAX_ARGS];
    for (int i = 0; i < 10; i++) of_value[i] = 2 * rng_normal(r);
    double own = rng_normal(r);
    joined_args(&first, of_value, own, first_args);
    of_value[9] = eval(&first, first_args);
    joined_args(&e, of_value, own, e_args);
    joined_args(&both, of_value, own, args);
    double want = eval(&e, e_args);
    if (fabs(want) < 1e6) same_number(eval(&both, args), want, "joined", round);
    assert_true(both.args[0] == first.args[0]);
}

static void joined_is_the_same(void **state) {
    (void)state;
    Rng r = {9};
    for (uint32_t i = 0; i < ROUNDS; i++) join_two(&r, i, i % 2 == 0);
}

static void fits_or_is_refused(void **state) {
    (void)state;
    Expr many = {.n_args = EWISE_MAX_ARGS}, other = {.n_args = 2, .args = {50, 51}}, out;
    for (uint32_t i = 0; i < EWISE_MAX_ARGS; i++) many.args[i] = i;
    assert_true(expr_step(&many, (ExprStep){.op = EWISE_TANH, .a = EXPR_ARG(0)}));
    assert_true(expr_step(&other, (ExprStep){.op = EWISE_ADD, .a = EXPR_ARG(0), .b = EXPR_ARG(1)}));
    assert_false(expr_compose(&many, &other, 0, &out));  // a ninth argument
    other.args[1] = 3;
    assert_true(expr_compose(&many, &other, 0, &out));  // one that is there already
    assert_int_equal(out.n_args, EWISE_MAX_ARGS);
    Expr full = {.n_args = 1};
    for (int i = 0; i < EWISE_MAX_STEPS; i++)
        assert_true(expr_step(&full, (ExprStep){.op = EWISE_TANH, .a = expr_result(&full)}));
    assert_false(expr_step(&full, (ExprStep){.op = EWISE_TANH, .a = expr_result(&full)}));
    assert_false(expr_compose(&full, &other, 0, &out));
}

// n values that all stay live until the end, then a sum.
static Expr wide(uint8_t n) {
    Expr e = {.n_args = 1};
    for (uint8_t i = 0; i < n; i++)
        expr_step(&e, (ExprStep){.op = EWISE_AFFINE, .a = EXPR_ARG(0), .p = (float)i + 2});
    for (uint8_t i = 1; i < n; i++) {
        int8_t so_far = i == 1 ? 0 : expr_result(&e);
        expr_step(&e, (ExprStep){.op = EWISE_ADD, .a = so_far, .b = (int8_t)i});
    }
    return e;
}

static void registers_run_out(void **state) {
    (void)state;
    ElementwiseProgram c;
    Expr               fits = wide(EWISE_REGISTERS), over = wide(EWISE_REGISTERS + 1);
    assert_true(expr_emit(&fits, &c));
    assert_true(eval_chain(&c, (double[]){1}) == 2 + 3 + 4 + 5);
    assert_false(expr_emit(&over, &c));
    Expr none = {.n_args = 1};
    assert_true(expr_emit(&none, &c));
    assert_int_equal(c.n_steps, 0);
}

// Checks that e simplifies to that one step of argument 0, times a factor in a second step if it is
// not 1.
static void becomes(Expr e, ElementwiseOp op, double factor, const char *what) {
    expr_simplify(&e);
    bool scaled = factor != 1;
    if (e.n_steps != (scaled ? 2 : 1) || e.steps[0].op != op || e.steps[0].a != EXPR_ARG(0))
        fail_msg("%s: %u steps, the first is %s", what, e.n_steps,
                 ewise_op_name((ElementwiseOp)e.steps[0].op));
    if (!scaled) return;
    assert_int_equal(e.steps[1].op, EWISE_AFFINE);
    assert_true(fabs((double)e.steps[1].p - factor) < 1e-6 && e.steps[1].q == 0);
}

static Expr steps(uint8_t n, const ExprStep *s) {
    Expr e = {.n_steps = n, .n_args = 1};
    memcpy(e.steps, s, n * sizeof *s);
    return e;
}
#define STEPS(...)                                                                                 \
    steps(sizeof((ExprStep[]){__VA_ARGS__}) / sizeof(ExprStep), (ExprStep[]){__VA_ARGS__})

#define X0 EXPR_ARG(0)
#define AFFINE(from, scale, shift)                                                                 \
    { .op = EWISE_AFFINE, .a = (from), .p = (scale), .q = (shift) }
#define MUL(left, right)                                                                           \
    { .op = EWISE_MUL, .a = (left), .b = (right) }
#define OF(name, from)                                                                             \
    { .op = EWISE_##name, .a = (from) }
#define HALF      0.5f
#define ROOT_HALF ((float)M_SQRT1_2)

static void well_known_forms(void **state) {
    (void)state;
    becomes(STEPS(OF(SIGMOID, X0), MUL(X0, 0)), EWISE_SILU, 1, "x * sigmoid(x)");
    becomes(STEPS(OF(SIGMOID, X0), MUL(0, X0)), EWISE_SILU, 1, "sigmoid(x) * x");
    becomes(STEPS(AFFINE(X0, 1, 3), {.op = EWISE_CLIP, .a = 0, .p = 0, .q = 6}, MUL(X0, 1),
                  AFFINE(2, 1.0f / 6, 0)),
            EWISE_HSWISH, 1, "x * clip(x + 3, 0, 6) / 6");
    becomes(STEPS(AFFINE(X0, 1, 3), {.op = EWISE_CLIP, .a = 0, .p = 0, .q = 6},
                  AFFINE(1, 1.0f / 6, 0), MUL(2, X0)),
            EWISE_HSWISH, 1, "x * (clip(x + 3, 0, 6) / 6)");
    becomes(STEPS({.op = EWISE_HSIGMOID, .a = X0, .p = 1.0f / 6, .q = HALF}, MUL(X0, 0)),
            EWISE_HSWISH, 1, "x * hardsigmoid(x)");
    becomes(STEPS(AFFINE(X0, ROOT_HALF, 0), OF(ERF, 0), AFFINE(1, 1, 1), MUL(X0, 2),
                  AFFINE(3, HALF, 0)),
            EWISE_GELU, 1, "x * (1 + erf(x / sqrt 2)) / 2");
    becomes(STEPS(AFFINE(X0, ROOT_HALF, 0), OF(ERF, 0), AFFINE(1, 1, 1), AFFINE(X0, HALF, 0),
                  MUL(3, 2)),
            EWISE_GELU, 1, "(x / 2) * (1 + erf(x / sqrt 2))");
    becomes(STEPS(AFFINE(X0, ROOT_HALF, 0), OF(ERF, 0), AFFINE(1, HALF, HALF), MUL(X0, 2)),
            EWISE_GELU, 1, "x * (erf(x / sqrt 2) / 2 + 1/2)");
    becomes(STEPS(OF(SIGMOID, X0), AFFINE(X0, 3, 0), MUL(1, 0)), EWISE_SILU, 3, "3x * sigmoid(x)");
    becomes(STEPS(AFFINE(X0, 2, 0), OF(COPY, 0), AFFINE(1, HALF, 0), OF(TANH, 2)), EWISE_TANH, 1,
            "tanh(2x / 2)");
}

static void look_alikes_stay(void **state) {
    (void)state;
    Expr kept[] = {
        STEPS(OF(SIGMOID, X0), MUL(EXPR_ARG(1), 0)),
        STEPS(OF(SIGMOID, X0), MUL(0, 0)),
        STEPS({.op = EWISE_HSIGMOID, .a = X0, .p = 0.2f, .q = HALF}, MUL(X0, 0)),
        STEPS(AFFINE(X0, 1, 3), {.op = EWISE_CLIP, .a = 0, .p = 0, .q = 5}, MUL(X0, 1)),
        STEPS(AFFINE(X0, HALF, 0), OF(ERF, 0), AFFINE(1, HALF, HALF), MUL(X0, 2)),
        STEPS(AFFINE(X0, ROOT_HALF, 0), OF(ERF, 0), AFFINE(1, HALF, 1), MUL(X0, 2)),
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        Expr e = kept[i];
        kept[i].n_args = 2;
        expr_simplify(&e);
        if (e.n_steps != kept[i].n_steps) fail_msg("form %zu has %u steps now", i, e.n_steps);
    }
}

static void first_step_goes(void **state) {
    (void)state;
    Expr e = STEPS(OF(TANH, X0), AFFINE(0, 2, 1), MUL(1, 0));
    expr_drop_first(&e);
    assert_int_equal(e.n_steps, 2);
    assert_true(eval(&e, (double[]){5}) == 55);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simplified_is_the_same), cmocka_unit_test(emitted_is_the_same),
        cmocka_unit_test(joined_is_the_same),     cmocka_unit_test(fits_or_is_refused),
        cmocka_unit_test(registers_run_out),      cmocka_unit_test(well_known_forms),
        cmocka_unit_test(look_alikes_stay),       cmocka_unit_test(first_step_goes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
