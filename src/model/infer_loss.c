#include "model/infer.h"

static Err check_shapes(const Tensor *x, const Tensor *target, const Tensor *weight) {
    bool fits = x->rank >= 2 && target->rank == x->rank - 1 && target->dims[0] == x->dims[0];
    for (int32_t i = 1; fits && i < target->rank; i++) fits = target->dims[i] == x->dims[i + 1];
    if (!fits) return err_set(ERR_INVALID, "the targets' shape is not the input's without classes");
    if (weight != NULL && (weight->rank != 1 || weight->dims[0] != x->dims[1]))
        return err_set(ERR_INVALID, "the weights are not one for each class");
    return ERR_OK;
}

Err infer_loss(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *target = c->in[1], *weight = infer_in(c, 2);
    const Node   *n = c->node;
    TRY(infer_need(x, TYPES_FLOAT, "input"));
    TRY(infer_need(target, TYPES_INDEX, "target"));
    if (weight != NULL) TRY(infer_need(weight, TYPES_FLOAT, "weight"));
    TRY(check_shapes(x, target, weight));
    const bool none = attr_is(n, "reduction", "none", false);
    if (!none && !attr_is(n, "reduction", "mean", true) && !attr_is(n, "reduction", "sum", false))
        return err_set(ERR_INVALID, "reduction is none of 'none', 'sum', 'mean'");
    out[0] = none ? *target : (Tensor){.rank = 0};
    out[0].dtype = x->dtype;
    out[0].data = NULL;
    if (n->n_out > 1) {
        out[1] = *x;
        out[1].data = NULL;
    }
    return ERR_OK;
}

Err infer_det(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_need(x, TYPES_FLOAT, "X"));
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return err_set(ERR_INVALID, "the last two dimensions are no square");
    TRY(infer_same(c, out));
    out[0].rank -= 2;
    return ERR_OK;
}
