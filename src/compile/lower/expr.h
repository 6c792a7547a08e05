// Expr: element-wise arithmetic while it is being fused; every step has one result, never changed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/elementwise.h"

// A source: step i is i, argument i is EXPR_ARG(i). The last step's result is the expression's.
#define EXPR_ARG(i) ((int8_t)(-1 - (int)(i)))

typedef struct ExprStep {
    uint8_t op;    // ElementwiseOp
    int8_t  a, b;  // b is read only where the operator has two operands
    float   p, q, lo, hi;
} ExprStep;

typedef struct Expr {
    uint8_t  n_steps;  // 0: argument 0 unchanged
    uint8_t  n_args;
    ExprStep steps[EWISE_MAX_STEPS];
    uint32_t args[EWISE_MAX_ARGS];  // values; behind a heavy layer [0] is its own result
} Expr;

bool     expr_is_binary(const ExprStep *s);        // has a second operand
uint32_t expr_uses(const Expr *e, int8_t source);  // how many operands are this source
int8_t   expr_result(const Expr *e);               // the last step, or argument 0
bool     expr_step(Expr *e, ExprStep s);           // false when there is no room
// Puts e behind first, which gives e's argument `at`. False, and *out undefined, when it does not
// fit the room, the arguments or the registers of a chain.
bool expr_compose(const Expr *first, const Expr *e, uint32_t at, Expr *out);
void expr_simplify(Expr *e);    // well-known forms become one step
void expr_drop_first(Expr *e);  // removes step 0, whose result becomes argument 0
bool expr_emit(const Expr *e, ElementwiseProgram *out);  // false when the registers do not suffice
