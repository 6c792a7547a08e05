#include "base/number.h"
#include "compile/run.h"
#include "kernel/ref_rnn.h"
#include "model/rnn.h"

static const RefGateFn fns[RNN_FN_COUNT] = {
    [RNN_RELU] = REF_GATE_RELU,
    [RNN_TANH] = REF_GATE_TANH,
    [RNN_SIGMOID] = REF_GATE_SIGMOID,
    [RNN_AFFINE] = REF_GATE_AFFINE,
    [RNN_LEAKY_RELU] = REF_GATE_LEAKY_RELU,
    [RNN_THRESHOLDED_RELU] = REF_GATE_THRESHOLDED_RELU,
    [RNN_SCALED_TANH] = REF_GATE_SCALED_TANH,
    [RNN_HARD_SIGMOID] = REF_GATE_HARD_SIGMOID,
    [RNN_ELU] = REF_GATE_ELU,
    [RNN_SOFTSIGN] = REF_GATE_SOFTSIGN,
    [RNN_SOFTPLUS] = REF_GATE_SOFTPLUS,
};

static RefRnn params(const OpCall *c, const Rnn *r) {
    OpId   op = c->node->op;
    RefRnn p = {
        .kind = op == OP_LSTM  ? REF_LSTM
                : op == OP_GRU ? REF_GRU
                               : REF_RNN,
        .steps = r->steps,
        .batch = r->batch,
        .input = r->input,
        .hidden = r->hidden,
        .gates = r->gates,
        .directions = r->directions,
        .reversed = r->reversed,
        .batch_first = r->batch_first,
        .linear_before_reset = r->linear_before_reset,
        .input_forget = r->input_forget,
        .clip = (double)r->clip,
    };
    for (int d = 0; d < 2; d++)
        for (int f = 0; f < RNN_FNS; f++)
            p.gate[d][f] =
                (RefGate){fns[r->fn[d][f]], (double)r->alpha[d][f], (double)r->beta[d][f]};
    return p;
}

static RefRnn prepare(const OpCall *c, const Rnn *r, Tensor *out) {
    RefRnn p = params(c, r);
    p.x = c->in[0];
    p.w = c->in[1];
    p.r = c->in[2];
    p.b = infer_in(c, 3);
    p.lens = infer_in(c, 4);
    p.h0 = infer_in(c, 5);
    p.c0 = infer_in(c, 6);
    p.p = infer_in(c, 7);
    p.y = &out[0];
    if (c->node->n_out > 1) p.yh = &out[1];
    if (c->node->n_out > 2) p.yc = &out[2];
    return p;
}

Err run_rnn(const OpCall *c, Tensor *out) {
    Rnn r;
    TRY(rnn_read(c, &r));
    RefRnn p = prepare(c, &r, out);
    return ref_rnn(&p, c->scratch);
}

// plain [d, g h, i] = (bytes [d, i, g h] - zero) * scale, per direction or per direction and gate.
static void unpack(const Tensor *bytes, const Tensor *scale, const Tensor *zero, Tensor *plain) {
    int64_t from = bytes->dims[1], to = bytes->dims[2];
    float  *w = plain->data;
    for (int64_t d = 0; d < bytes->dims[0]; d++)
        for (int64_t j = 0; j < to; j++) {
            double s = number_f64(scale, scale->rank == 1 ? d : d * to + j);
            double z = number_f64(zero, zero->rank == 1 ? d : d * to + j);
            for (int64_t i = 0; i < from; i++)
                w[(d * to + j) * from + i] =
                    (float)((number_f64(bytes, (d * from + i) * to + j) - z) * s);
        }
}

Err run_lstm_dynamic(const OpCall *c, Tensor *out) {
    RnnBytes plain;
    Rnn      r;
    Tensor   x = *c->in[0];
    TRY(rnn_bytes(c, &plain));
    TRY(tensor_room(&plain.w, c->scratch));
    TRY(tensor_room(&plain.r, c->scratch));
    TRY(tensor_room(&x, c->scratch));
    unpack(c->in[1], c->in[8], c->in[9], &plain.w);
    unpack(c->in[2], c->in[10], c->in[11], &plain.r);
    TRY(ref_coarsen(c->in[0], &x, c->scratch));
    plain.in[0] = &x;
    TRY(rnn_read(&plain.call, &r));
    RefRnn p = prepare(&plain.call, &r, out);
    p.coarse = true;
    return ref_rnn(&p, c->scratch);
}
