// GatedRnn: ONNX GRU and LSTM layers with the default activations, sigmoid and tanh, and RNN layers
// with tanh or relu, which have one gate.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/version.h"

typedef enum GatedRnnKind {
    GATED_RNN_GRU,
    GATED_RNN_LSTM,
    GATED_RNN_TANH,
    GATED_RNN_RELU
} GatedRnnKind;

typedef struct GatedRnnShape {
    GatedRnnKind kind;
    uint32_t     steps, batch, input, hidden, directions;
    bool         reversed;     // direction 0 runs backwards; direction 1 always does
    bool         batch_first;  // the batch is the outermost dimension of x, y and the states
    bool         linear_before_reset, input_forget, peepholes;
    float        clip;  // limit of activation inputs; INFINITY: none
} GatedRnnShape;

// ONNX's weights: w [d][g h][i], r [d][g h][h], b [d][2 g h], p [d][3 h]; b and p may be NULL.
// Gate order: zrh for GRU, iofc for LSTM; RNN has one.
typedef struct GatedRnnWeights {
    const float *w, *r, *b, *p;
} GatedRnnWeights;

// Arguments of isa->gated_rnn(&rnn, part).
typedef struct GatedRnn {
    GatedRnnShape  shape;
    Version        version;  // one of gated_rnn_versions
    const float   *packed;   // from gated_rnn_pack
    const float   *x;        // [t][n][i]
    const int32_t *lens;     // [n], each within 0..steps; NULL: all steps
    const float   *h0, *c0;  // [d][n][h]; NULL: zeros
    float         *y;        // [t][d][n][h]; may be NULL
    float         *yh, *yc;  // [d][n][h]; may be NULL
} GatedRnn;

size_t gated_rnn_pack_bytes(const GatedRnnShape *s, const Isa *isa);
void   gated_rnn_pack(const GatedRnnShape *s, const GatedRnnWeights *w, const Isa *isa, float *out);

// Writes at least 1 and at most max versions, the one expected to be fastest first; returns how
// many.
uint32_t gated_rnn_versions(const GatedRnnShape *s, const Isa *isa, const CacheSizes *caches,
                            Version *out, uint32_t max);
uint32_t gated_rnn_tasks(const GatedRnnShape *s, const Isa *isa, const Version *v);
size_t gated_rnn_scratch(const GatedRnnShape *s, const Isa *isa, const Version *v);  // of each part
Traffic gated_rnn_traffic(const GatedRnnShape *s, const Isa *isa, const Version *v,
                          const CacheSizes *caches, uint32_t parts);

// Gate columns are stored [blocks][gates][lanes], so that all gates of one hidden unit are close
// together. A GRU's last gate depends on the others and is stored after them.
typedef struct GatedRnnPlan {
    uint32_t blocks, padded;  // blocks of lanes hidden units; blocks * lanes
    uint32_t gates, columns;  // columns = gates * padded
    uint32_t early,
        late;  // columns of the gates computed first (all of an LSTM's); of a GRU's last gate
    size_t w, r, bias, late_bias, peep;  // offsets in the packed weights, in floats
    size_t stride;                       // floats per direction
} GatedRnnPlan;

GatedRnnPlan gated_rnn_plan(const GatedRnnShape *s, uint32_t lanes);

// Layout of a part's scratch for `rows` sequences, in floats.
typedef struct GatedRnnScratch {
    size_t sums;             // [steps of a block][rows][columns]: input projections, then gate sums
    size_t h, c, late, end;  // [rows][padded]
} GatedRnnScratch;

GatedRnnScratch gated_rnn_scratch_layout(const GatedRnnShape *s, const Version *v,
                                         const GatedRnnPlan *p, uint32_t rows);
