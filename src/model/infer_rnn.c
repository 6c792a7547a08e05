#include "model/infer.h"
#include "model/rnn.h"

Err infer_rnn(const OpCall *c, Tensor *out) {
    Rnn   r;
    DType t = c->in[0]->dtype;
    TRY(infer_need(c->in[0], TYPES_FLOAT, "X"));
    TRY(rnn_read(c, &r));
    int64_t d = r.directions;
    int64_t all[4] = {r.steps, d, r.batch, r.hidden}, last[3] = {d, r.batch, r.hidden};
    if (r.batch_first) {
        all[0] = last[0] = r.batch;
        all[1] = r.steps;
        all[2] = last[1] = d;
    }
    for (uint32_t i = 0; i < c->node->n_out; i++)
        out[i] = i == 0 ? tensor_of(t, 4, all, NULL) : tensor_of(t, 3, last, NULL);
    return ERR_OK;
}

Err infer_lstm_dynamic(const OpCall *c, Tensor *out) {
    RnnBytes plain;
    TRY(rnn_bytes(c, &plain));
    return infer_rnn(&plain.call, out);
}
