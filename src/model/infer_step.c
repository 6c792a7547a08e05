// One step of a training rule: Adagrad, Adam, Momentum. Rate and count, then the variables, their
// gradients and one or two histories of each.
#include "model/infer.h"

Err infer_step(const OpCall *c, Tensor *out) {
    uint32_t histories = c->node->op == OP_Adam ? 2 : 1, each = 2 + histories;
    uint32_t n = (c->node->n_in - 2) / each;
    if (c->node->n_in != 2 + n * each || c->node->n_out != n * (1 + histories))
        return err_set(ERR_INVALID, "%u inputs and %u outputs do not belong together",
                       c->node->n_in, c->node->n_out);
    if (c->node->op == OP_Adam && !attr_has(c->node, "epsilon"))
        return err_set(ERR_UNSUPPORTED, "gives no epsilon, and ONNX's definition (1e-6) and test "
                                        "(1e-2) disagree on its default");
    for (uint32_t i = 0; i < c->node->n_in; i++) {
        const Tensor *t = c->in[i];
        if (t == NULL) return err_set(ERR_INVALID, "input %u is missing", i);
        TRY(infer_need(t, i == 1 ? TYPES_INDEX : TYPES_FLOAT, i == 1 ? "T" : "of numbers"));
        if (i < 2 && tensor_count(t) != 1)
            return err_set(ERR_INVALID, "input %u must be one number", i);
        const Tensor *variable = i >= 2 ? c->in[2 + (i - 2) % n] : t;
        if (variable == NULL || t->dtype != variable->dtype || !tensor_same_shape(t, variable))
            return err_set(ERR_INVALID, "input %u differs from its variable in type or shape", i);
    }
    for (uint32_t i = 0; i < c->node->n_out; i++) {
        out[i] = *c->in[2 + i % n];
        out[i].data = NULL;
    }
    return ERR_OK;
}
