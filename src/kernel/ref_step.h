// Step: moves a variable against its gradient by the rules of Adagrad, Adam or momentum.
#pragma once

#include "base/tensor.h"

typedef struct RefStep {
    double rate, alpha, beta, epsilon;
    double decay;  // of a variable towards zero, as part of its gradient
    double after;  // share taken off the result
    bool   nesterov;
} RefStep;

// One variable: value, gradient, and up to two histories, before and after.
typedef struct RefVariable {
    const Tensor *x, *gradient, *history[2];
    Tensor       *x_new, *history_new[2];
} RefVariable;

void ref_adagrad(const RefStep *s, const RefVariable *v);   // history: sum of squared gradients
void ref_adam(const RefStep *s, const RefVariable *v);      // histories: mean gradient, mean square
void ref_momentum(const RefStep *s, const RefVariable *v);  // history: the momentum
