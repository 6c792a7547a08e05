// Loss: how far log-probabilities are from the classes they should name; the slow, obvious truth.
#pragma once

#include "base/tensor.h"

typedef enum RefReduction { REF_LOSS_NONE, REF_LOSS_SUM, REF_LOSS_MEAN } RefReduction;

typedef struct RefLoss {
    RefReduction  reduction;
    bool          ignores;  // elements whose target is `ignored` count nothing
    int64_t       ignored;
    const Tensor *weight;  // of every class; NULL: all 1
} RefLoss;

// Negative log-likelihood: log_prob is N x C x rest, target N x rest (int32 or int64), y as target
// or one number. Fails when a target is no class.
MUST_USE Err ref_loss(const RefLoss *p, const Tensor *log_prob, const Tensor *target, Tensor *y);

// Step: moves a variable against its gradient by the rules of Adagrad, Adam or momentum.

typedef struct RefOptimizer {
    double rate, alpha, beta, epsilon;
    double decay;  // of a variable towards zero, as part of its gradient
    double after;  // share taken off the result
    bool   nesterov;
} RefOptimizer;

// One variable: value, gradient, and up to two histories, before and after.
typedef struct RefParameter {
    const Tensor *x, *gradient, *history[2];
    Tensor       *x_new, *history_new[2];
} RefParameter;

void ref_adagrad(const RefOptimizer *s,
                 const RefParameter *v);  // history: sum of squared gradients
void ref_adam(const RefOptimizer *s,
              const RefParameter *v);  // histories: mean gradient, mean square
void ref_momentum(const RefOptimizer *s, const RefParameter *v);  // history: the momentum
