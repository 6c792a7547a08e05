// Losses and optimizer steps.
#include <math.h>

#include "base/tensor.h"
#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_matmul.h"
#include "kernel/ref/ref_norm.h"
#include "kernel/ref/ref_train.h"
#include "model/infer/infer_params.h"

// Log-probabilities of x along its classes, written to output 1 if it exists.
static Err log_softmax(const OpCall *c, Tensor *out, Tensor *log_prob) {
    const bool    along[TENSOR_MAX_RANK] = {false, true};
    const Tensor *x = c->in[0];
    *log_prob = *x;
    log_prob->data = c->node->n_out > 1 ? out[1].data
                                        : arena_try(c->scratch, (size_t)tensor_count(x),
                                                    dtype_size(x->dtype), TENSOR_ALIGN);
    double *row = arena_try_new(c->scratch, double, (size_t)x->dims[1]);
    if (log_prob->data == NULL || row == NULL)
        return err_set(ERR_LIMIT, "no memory for the log-probabilities");
    ref_softmax(REF_LOG_SOFTMAX, along, x, log_prob, row);
    return ERR_OK;
}

Err run_loss(const OpCall *c, Tensor *out) {
    const Node *n = c->node;
    RefLoss     p = {.reduction = attr_is(n, "reduction", "none", false)  ? REF_LOSS_NONE
                                  : attr_is(n, "reduction", "sum", false) ? REF_LOSS_SUM
                                                                          : REF_LOSS_MEAN,
                     .ignores = attr_has(n, "ignore_index"),
                     .ignored = attr_int(n, "ignore_index", 0),
                     .weight = infer_input(c, 2)};
    Tensor      log_prob = *c->in[0];
    if (n->op == OP_SoftmaxCrossEntropyLoss) TRY(log_softmax(c, out, &log_prob));
    log_prob = infer_channels(&log_prob, true);
    return ref_loss(&p, &log_prob, c->in[1], &out[0]);
}

Err run_det(const OpCall *c, Tensor *out) {
    const size_t n = (size_t)c->in[0]->dims[c->in[0]->rank - 1];
    double      *room = arena_try(c->scratch, n, n * sizeof *room, _Alignof(double));
    if (room == NULL) return err_set(ERR_LIMIT, "no memory for a matrix of %zu rows", n);
    ref_det(c->in[0], &out[0], room);
    return ERR_OK;
}

// Optimizer steps.

static double attr_double(const Node *n, const char *name, float otherwise) {
    return (double)attr_float(n, name, otherwise);
}

// Learning rate and bias correction depend on the number of earlier steps.
static RefOptimizer optimizer_of(const OpCall *c) {
    const Node  *n = c->node;
    double       steps = tensor_get_f64(c->in[1], 0);
    RefOptimizer s = {.rate = tensor_get_f64(c->in[0], 0),
                      .alpha = attr_double(n, "alpha", 0.9f),
                      .beta = attr_double(n, "beta", 0.999f),
                      .epsilon = attr_double(n, "epsilon", 1e-6f),
                      .decay = attr_double(n, "norm_coefficient", 0),
                      .after = attr_double(n, "norm_coefficient_post", 0),
                      .nesterov = attr_is(n, "mode", "nesterov", false)};
    if (n->op == OP_Adagrad) s.rate /= 1 + steps * attr_double(n, "decay_factor", 0);
    if (n->op == OP_Adam && steps > 0)
        s.rate *= sqrt(1 - pow(s.beta, steps)) / (1 - pow(s.alpha, steps));
    if (n->op == OP_Momentum && steps <= 0) s.beta = 1;
    return s;
}

Err run_optimizer(const OpCall *c, Tensor *out) {
    uint32_t histories = c->node->op == OP_Adam ? 2 : 1, n = (c->node->n_in - 2) / (2 + histories);
    RefOptimizer s = optimizer_of(c);
    for (uint32_t i = 0; i < n; i++) {
        const Tensor *const *in = c->in + 2 + i;
        RefParameter         v = {.x = in[0], .gradient = in[n], .x_new = &out[i]};
        for (uint32_t k = 0; k < histories; k++) {
            v.history[k] = in[(size_t)(2 + k) * n];
            v.history_new[k] = &out[(size_t)(1 + k) * n + i];
        }
        if (c->node->op == OP_Adagrad) ref_adagrad(&s, &v);
        if (c->node->op == OP_Adam) ref_adam(&s, &v);
        if (c->node->op == OP_Momentum) ref_momentum(&s, &v);
    }
    return ERR_OK;
}
