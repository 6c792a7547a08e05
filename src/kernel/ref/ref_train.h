// Reference training operators: negative log-likelihood loss, and the optimizers Adagrad, Adam and
// momentum.
#pragma once

#include "base/tensor.h"

typedef enum RefReduction { REF_LOSS_NONE, REF_LOSS_SUM, REF_LOSS_MEAN } RefReduction;

typedef struct RefLoss {
    RefReduction  reduction;
    bool          ignores;  // skip elements with target `ignored`
    int64_t       ignored;
    const Tensor *weight;  // per class; NULL: all 1
} RefLoss;

// Negative log-likelihood: log_prob is [N, C, rest], target [N, rest] (int32 or int64), y as target
// or a scalar. Fails if a target is not a class.
MUST_USE Err ref_loss(const RefLoss *p, const Tensor *log_prob, const Tensor *target, Tensor *y);

typedef struct RefOptimizer {
    double rate, alpha, beta, epsilon;
    double decay;  // weight decay, added to the gradient
    double after;  // weight decay, applied to the result
    bool   nesterov;
} RefOptimizer;

// One parameter tensor: value, gradient, and up to two state tensors, before and after.
typedef struct RefParameter {
    const Tensor *x, *gradient, *history[2];
    Tensor       *x_new, *history_new[2];
} RefParameter;

void ref_adagrad(const RefOptimizer *s,
                 const RefParameter *v);  // history: sum of squared gradients
void ref_adam(const RefOptimizer *s,
              const RefParameter *v);  // histories: mean gradient, mean square
void ref_momentum(const RefOptimizer *s, const RefParameter *v);  // history: the momentum
