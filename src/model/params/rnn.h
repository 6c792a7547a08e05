// Rnn: the parameters of RNN, GRU and LSTM, read from attributes and shapes and checked.
#pragma once

#include "model/graph.h"
#include "model/op.h"

typedef enum RnnFn {
    RNN_RELU,
    RNN_TANH,
    RNN_SIGMOID,
    RNN_AFFINE,
    RNN_LEAKY_RELU,
    RNN_THRESHOLDED_RELU,
    RNN_SCALED_TANH,
    RNN_HARD_SIGMOID,
    RNN_ELU,
    RNN_SOFTSIGN,
    RNN_SOFTPLUS,
    RNN_FN_COUNT
} RnnFn;

enum { RNN_FNS = 3 };  // activations per direction: f, g, h; RNN uses one, GRU two

typedef struct Rnn {
    int64_t steps, batch, input, hidden;
    int32_t gates, directions;
    bool    reversed;     // the first direction runs backwards
    bool    batch_first;  // layout 1
    bool    linear_before_reset, input_forget;
    float   clip;  // 0: none
    RnnFn   fn[2][RNN_FNS];
    float   alpha[2][RNN_FNS], beta[2][RNN_FNS];
} Rnn;

MUST_USE Err rnn_read(const OpCall *c, Rnn *out);

// DynamicQuantizeLSTM, with 8-bit weights [d, i, g h] and [d, h, g h], as a call of the float LSTM.
typedef struct QuantizedRnn {
    OpCall        call;  // of the float LSTM; its weights have no data
    Node          node;
    const Tensor *in[8];
    Tensor        w, r;
} QuantizedRnn;

MUST_USE Err rnn_read_quantized(const OpCall *c, QuantizedRnn *out);
