#include "compile/run.h"
#include "kernel/ref_det.h"
#include "kernel/ref_loss.h"
#include "kernel/ref_softmax.h"
#include "model/infer_math.h"

// Log-probabilities of x along its classes: an output if that is asked for.
static Err log_softmax(const OpCall *c, Tensor *out, Tensor *log_prob) {
    const bool    along[TENSOR_MAX_RANK] = {false, true};
    const Tensor *x = c->in[0];
    *log_prob = *x;
    log_prob->data = c->node->n_out > 1 ? out[1].data
                                        : arena_try(c->scratch, (size_t)tensor_count(x),
                                                    dtype_size(x->dtype), TENSOR_ALIGN);
    double *row = arena_try_new(c->scratch, double, (size_t)x->dims[1]);
    if (log_prob->data == NULL || row == NULL)
        return err_set(ERR_LIMIT, "no room for the log-probabilities");
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
                     .weight = infer_in(c, 2)};
    Tensor      log_prob = *c->in[0];
    if (n->op == OP_SoftmaxCrossEntropyLoss) TRY(log_softmax(c, out, &log_prob));
    log_prob = infer_channels(&log_prob, true);
    return ref_loss(&p, &log_prob, c->in[1], &out[0]);
}

Err run_det(const OpCall *c, Tensor *out) {
    const size_t n = (size_t)c->in[0]->dims[c->in[0]->rank - 1];
    double      *room = arena_try(c->scratch, n, n * sizeof *room, _Alignof(double));
    if (room == NULL) return err_set(ERR_LIMIT, "no room for a matrix of %zu rows", n);
    ref_det(c->in[0], &out[0], room);
    return ERR_OK;
}
