// Training steps on ref_step.
#include <math.h>

#include "base/number.h"
#include "compile/run.h"
#include "kernel/ref_step.h"

static double real(const Node *n, const char *name, float otherwise) {
    return (double)attr_float(n, name, otherwise);
}

// Rates and factors depend on how many steps were taken before.
static RefStep step_of(const OpCall *c) {
    const Node *n = c->node;
    double      steps = number_f64(c->in[1], 0);
    RefStep     s = {.rate = number_f64(c->in[0], 0),
                     .alpha = real(n, "alpha", 0.9f),
                     .beta = real(n, "beta", 0.999f),
                     .epsilon = real(n, "epsilon", 1e-6f),
                     .decay = real(n, "norm_coefficient", 0),
                     .after = real(n, "norm_coefficient_post", 0),
                     .nesterov = attr_is(n, "mode", "nesterov", false)};
    if (n->op == OP_Adagrad) s.rate /= 1 + steps * real(n, "decay_factor", 0);
    if (n->op == OP_Adam && steps > 0)
        s.rate *= sqrt(1 - pow(s.beta, steps)) / (1 - pow(s.alpha, steps));
    if (n->op == OP_Momentum && steps <= 0) s.beta = 1;
    return s;
}

Err run_step(const OpCall *c, Tensor *out) {
    uint32_t histories = c->node->op == OP_Adam ? 2 : 1, n = (c->node->n_in - 2) / (2 + histories);
    RefStep  s = step_of(c);
    for (uint32_t i = 0; i < n; i++) {
        const Tensor *const *in = c->in + 2 + i;
        RefVariable          v = {.x = in[0], .gradient = in[n], .x_new = &out[i]};
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
