// Reference RNN, GRU and LSTM layers.
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
    RefRnnKind    kind;
    int64_t       steps, batch, input, hidden;
    int32_t       gates, directions;
    bool          reversed;     // direction 0 runs backwards; direction 1 always does
    bool          batch_first;  // n is the outermost dimension of x, y and the states
    bool          linear_before_reset, input_forget;
    bool          quantize_state;  // h is rounded to 8 bits before r, as DynamicQuantizeLinear does
    double        clip;            // limit of activation inputs; 0: none
    RefGate       gate[2][3];      // f, g, h of each direction
    const Tensor *x, *w, *r;       // [t, n, i], [d, g h, i], [d, g h, h]
    const Tensor *b, *lens;        // [d, 2 g h], int32 [n]; may be NULL
    const Tensor *h0, *c0;         // [d, n, h]; may be NULL
    const Tensor *p;               // [d, 3 h] peepholes; may be NULL
    Tensor       *y, *yh, *yc;     // [t, d, n, h], [d, n, h]; may be NULL; y starts as zeros
} RefRnn;

// Fails on a length outside [0, steps].
MUST_USE Err ref_rnn(const RefRnn *p, Arena *scratch);

// y = float32 x, quantised by DynamicQuantizeLinear and dequantised.
MUST_USE Err ref_fake_quantize(const Tensor *x, Tensor *y, Arena *scratch);

double ref_gate(const RefGate *g, double x);
