// Expr: element-wise arithmetic in SSA form, while it is being fused.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/elementwise.h"

// A source is step i (i) or argument i (EXPR_ARG(i)). The last step is the result.
#define EXPR_ARG(i) ((int8_t)(-1 - (int)(i)))

typedef struct ExprStep {
    uint8_t op;    // ElementwiseOp
    int8_t  a, b;  // b only of binary operators
    float   p, q, lo, hi;
} ExprStep;

typedef struct Expr {
    uint8_t  n_steps;  // 0: the result is argument 0
    uint8_t  n_args;
    ExprStep steps[EWISE_MAX_STEPS];
    uint32_t args[EWISE_MAX_ARGS];  // IR values; in an epilogue [0] is the layer's own result
} Expr;

bool     expr_is_binary(const ExprStep *s);        // has two operands
uint32_t expr_uses(const Expr *e, int8_t source);  // operands that are this source
int8_t   expr_result(const Expr *e);      // source of the result: the last step, or argument 0
bool     expr_step(Expr *e, ExprStep s);  // appends; false: full
// Composes e after `first`: the result of `first` is e's argument `at`. False, with *out undefined:
// too many steps, arguments or registers.
bool expr_compose(const Expr *first, const Expr *e, uint32_t at, Expr *out);
void expr_simplify(Expr *e);    // patterns such as GELU, SiLU and affine chains become one step
void expr_drop_first(Expr *e);  // removes step 0; its result becomes argument 0
bool expr_emit(const Expr *e, ElementwiseProgram *out);  // allocates registers; false: too few
