// Losses, optimizer steps, and Det.
#include "model/infer/infer.h"

static Err check_loss_shapes(const Tensor *x, const Tensor *target, const Tensor *weight) {
    bool fits = x->rank >= 2 && target->rank == x->rank - 1 && target->dims[0] == x->dims[0];
    for (int32_t i = 1; fits && i < target->rank; i++) fits = target->dims[i] == x->dims[i + 1];
    if (!fits)
        return err_set(ERR_INVALID,
                       "target must have the input's shape without the class dimension");
    if (weight != NULL && (weight->rank != 1 || weight->dims[0] != x->dims[1]))
        return err_set(ERR_INVALID, "weight must have one element per class");
    return ERR_OK;
}

Err infer_loss(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *target = c->in[1], *weight = infer_input(c, 2);
    const Node   *n = c->node;
    TRY(infer_check_type(x, TYPES_FLOAT, "input"));
    TRY(infer_check_type(target, TYPES_INDEX, "target"));
    if (weight != NULL) TRY(infer_check_type(weight, TYPES_FLOAT, "weight"));
    TRY(check_loss_shapes(x, target, weight));
    const bool none = attr_is(n, "reduction", "none", false);
    if (!none && !attr_is(n, "reduction", "mean", true) && !attr_is(n, "reduction", "sum", false))
        return err_set(ERR_INVALID, "reduction must be 'none', 'sum' or 'mean'");
    out[0] = none ? infer_like(target) : (Tensor){.rank = 0};
    out[0].dtype = x->dtype;
    if (n->n_out > 1) out[1] = infer_like(x);
    return ERR_OK;
}

Err infer_det(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0];
    TRY(infer_check_type(x, TYPES_FLOAT, "X"));
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return err_set(ERR_INVALID, "the last two dimensions must be equal");
    TRY(infer_same(c, out));
    out[0].rank -= 2;
    return ERR_OK;
}

// Adagrad, Adam, Momentum. Inputs: learning rate, step count, then n variables, their n gradients
// and one or two moments of each.
Err infer_optimizer(const OpCall *c, Tensor *out) {
    uint32_t moments = c->node->op == OP_Adam ? 2 : 1, each = 2 + moments;
    uint32_t n = (c->node->n_in - 2) / each;
    if (c->node->n_in != 2 + n * each || c->node->n_out != n * (1 + moments))
        return err_set(ERR_INVALID, "%u inputs and %u outputs do not match", c->node->n_in,
                       c->node->n_out);
    if (c->node->op == OP_Adam && !attr_has(c->node, "epsilon"))
        return err_set(ERR_UNSUPPORTED, "epsilon is missing; its default differs between ONNX's "
                                        "definition (1e-6) and test (1e-2)");
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        const Tensor *t = c->in[i];
        TRY(infer_present(c, i));
        TRY(infer_check_type(t, i == 1 ? TYPES_INDEX : TYPES_FLOAT, i == 1 ? "T" : "of floats"));
        if (i < 2 && tensor_count(t) != 1)
            return err_set(ERR_INVALID, "input %u must have one element", i);
        const Tensor *variable = i >= 2 ? c->in[2 + (i - 2) % n] : t;
        if (variable == NULL || t->dtype != variable->dtype || !tensor_same_shape(t, variable))
            return err_set(ERR_INVALID, "input %u differs from its variable in type or shape", i);
    }
    for (uint32_t i = 0; i < c->node->n_out; i++) out[i] = infer_like(c->in[2 + i % n]);
    return ERR_OK;
}
