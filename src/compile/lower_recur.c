// GRU and LSTM with constant weights and the usual activations.
#include <math.h>

#include "compile/lower.h"
#include "compile/spec.h"
#include "model/infer.h"
#include "model/rnn.h"

enum { IN_X, IN_W, IN_R, IN_B, IN_LENS, IN_H0, IN_C0, IN_P, IN_COUNT };

static bool usual(const Rnn *r, bool lstm) {
    for (int32_t d = 0; d < r->directions; d++)
        if (r->fn[d][0] != RNN_SIGMOID || r->fn[d][1] != RNN_TANH ||
            (lstm && r->fn[d][2] != RNN_TANH))
            return false;
    return true;
}

static bool weights_of(const Ir *ir, const Node *n, RecurWeights *w) {
    w->w = ir_floats(ir, lower_in(ir, n, IN_W));
    w->r = ir_floats(ir, lower_in(ir, n, IN_R));
    w->b = ir_floats(ir, lower_in(ir, n, IN_B));
    w->p = ir_floats(ir, lower_in(ir, n, IN_P));
    if (w->w == NULL || w->r == NULL) return false;
    if (lower_in(ir, n, IN_B) != IR_NONE && w->b == NULL) return false;
    return lower_in(ir, n, IN_P) == IR_NONE || w->p != NULL;
}

bool lower_recur(Ir *ir, const Node *n) {
    const Tensor *in[IN_COUNT] = {0};
    OpCall        c = {.node = n, .in = in};
    Rnn           r;
    RecurSpec     s = {0};
    bool          lstm = n->op == OP_LSTM;
    for (uint32_t i = 0; i < n->n_in && i < IN_COUNT; i++) in[i] = lower_type(ir, n, i);
    if (!lower_is_float(ir, n, 0) || in[IN_LENS] != NULL || !weights_of(ir, n, &s.weights))
        return false;
    if (rnn_read(&c, &r) != ERR_OK || !usual(&r, lstm)) return false;
    if (r.steps > INT32_MAX || r.batch > INT32_MAX) return false;
    s.shape = (RecurShape){.kind = lstm ? RECUR_LSTM : RECUR_GRU,
                           .steps = (uint32_t)r.steps,
                           .batch = (uint32_t)r.batch,
                           .input = (uint32_t)r.input,
                           .hidden = (uint32_t)r.hidden,
                           .directions = (uint32_t)r.directions,
                           .reversed = r.reversed,
                           .batch_first = r.batch_first,
                           .linear_before_reset = r.linear_before_reset,
                           .input_forget = r.input_forget,
                           .peepholes = s.weights.p != NULL,
                           .clip = r.clip > 0 ? r.clip : INFINITY};
    RecurSpec *own = arena_new(ir->arena, RecurSpec, 1);
    *own = s;
    uint32_t x = lower_in(ir, n, IN_X), h0 = lower_in(ir, n, IN_H0), c0 = lower_in(ir, n, IN_C0);
    uint32_t out[3];
    for (uint32_t i = 0; i < 3; i++) out[i] = lower_out(ir, n, i);
    IrLayer *l = ir_layer(ir, IR_RECUR, n, 3, 3);
    l->in[0] = x;
    l->in[1] = h0;
    l->in[2] = c0;
    for (uint32_t i = 0; i < 3; i++) l->out[i] = out[i];
    l->spec = own;
    return true;
}
