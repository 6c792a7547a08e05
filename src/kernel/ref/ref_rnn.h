// Rnn: RNN, GRU and LSTM layers, step by step; the slow, obvious truth.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

typedef enum RefRnnKind { REF_RNN, REF_GRU, REF_LSTM } RefRnnKind;

typedef enum RefGateFn {
    REF_GATE_RELU,
    REF_GATE_TANH,
    REF_GATE_SIGMOID,
    REF_GATE_AFFINE,
    REF_GATE_LEAKY_RELU,
    REF_GATE_THRESHOLDED_RELU,
    REF_GATE_SCALED_TANH,
    REF_GATE_HARD_SIGMOID,
    REF_GATE_ELU,
    REF_GATE_SOFTSIGN,
    REF_GATE_SOFTPLUS,
} RefGateFn;

typedef struct RefGate {
    RefGateFn fn;
    double    alpha, beta;
} RefGate;

// d directions, t steps, n batch, i input, h hidden, g gates (RNN 1, GRU 3: zrh, LSTM 4: iofc).
typedef struct RefRnn {
    RefRnnKind kind;
    int64_t    steps, batch, input, hidden;
    int32_t    gates, directions;
    bool       reversed;     // direction 0 starts at the end; direction 1 always does
    bool       batch_first;  // x, y and the states have n before t and d
    bool       linear_before_reset, input_forget;
    bool       quantize_state;  // what meets r is rounded to 8 bits, as DynamicQuantizeLinear does
    double     clip;            // of what goes into an activation; 0: none
    RefGate    gate[2][3];      // f, g, h of each direction
    const Tensor *x, *w, *r;    // [t, n, i], [d, g h, i], [d, g h, h]
    const Tensor *b, *lens;     // [d, 2 g h], int32 [n]; NULL when absent
    const Tensor *h0, *c0;      // [d, n, h]; NULL when absent
    const Tensor *p;            // [d, 3 h] peepholes; NULL when absent
    Tensor       *y, *yh, *yc;  // [t, d, n, h], [d, n, h]; NULL when not wanted. y starts as zeros
} RefRnn;

// Fails when a length is outside [0, steps].
MUST_USE Err ref_rnn(const RefRnn *p, Arena *scratch);

// y = float32 x rounded to the 256 steps that DynamicQuantizeLinear would choose.
MUST_USE Err ref_fake_quantize(const Tensor *x, Tensor *y, Arena *scratch);

double ref_gate(const RefGate *g, double x);
