// GatedRnn: GRU and LSTM layers as ONNX means them, with sigmoid and tanh.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/version.h"

typedef enum GatedRnnKind { GATED_RNN_GRU, GATED_RNN_LSTM } GatedRnnKind;

typedef struct GatedRnnShape {
    GatedRnnKind kind;
    uint32_t     steps, batch, input, hidden, directions;
    bool         reversed;     // direction 0 starts at the end; direction 1 always does
    bool         batch_first;  // x, y and the states have the batch before the steps and directions
    bool         linear_before_reset, input_forget, peepholes;
    float        clip;  // of what goes into an activation; INFINITY: none
} GatedRnnShape;

// Weights as ONNX has them: w [d][g h][i], r [d][g h][h], b [d][2 g h], p [d][3 h]; b and p may be
// NULL. Gates g are zrh of a GRU, iofc of an LSTM.
typedef struct GatedRnnWeights {
    const float *w, *r, *b, *p;
} GatedRnnWeights;

typedef struct GatedRnn {
    GatedRnnShape  shape;
    Version        version;  // one of gated_rnn_versions
    const float   *packed;   // what gated_rnn_pack made
    const float   *x;        // [t][n][i]
    const int32_t *lens;     // [n], each within 0..steps; NULL: all steps
    const float   *h0, *c0;  // [d][n][h]; NULL: zeros
    float         *y;        // [t][d][n][h]; NULL when not wanted
    float         *yh, *yc;  // [d][n][h]; NULL when not wanted
} GatedRnn;

// Vector kernel: isa->gated_rnn(gated_rnn, part).

size_t gated_rnn_pack_bytes(const GatedRnnShape *s, const Isa *isa);
void   gated_rnn_pack(const GatedRnnShape *s, const GatedRnnWeights *w, const Isa *isa, float *out);

// The best guess comes first. Returns how many were written, at least 1.
uint32_t gated_rnn_versions(const GatedRnnShape *s, const Isa *isa, const CacheSizes *caches,
                            Version *out, uint32_t max);
uint32_t gated_rnn_tasks(const GatedRnnShape *s, const Isa *isa, const Version *v);
size_t gated_rnn_scratch(const GatedRnnShape *s, const Isa *isa, const Version *v);  // of each part
Traffic gated_rnn_traffic(const GatedRnnShape *s, const Isa *isa, const Version *v,
                          const CacheSizes *caches, uint32_t parts);

// Gates lie in groups of lanes hidden numbers: [blocks][gates][lanes], so that what meets in one
// number of the state is close. A GRU's last gate needs the others first and lies behind them.
typedef struct GatedRnnPlan {
    uint32_t blocks, padded;  // of lanes hidden numbers; blocks * lanes
    uint32_t gates, wide;     // gates * padded
    uint32_t early, late;     // columns that come first (all of an LSTM), and a GRU's last gate
    size_t   w, r, bias, late_bias, peep, each;  // packed, in numbers; of each direction
} GatedRnnPlan;

GatedRnnPlan gated_rnn_plan(const GatedRnnShape *s, uint32_t lanes);

// Where the scratch of a part has what, in numbers, when it has that many sequences.
typedef struct GatedRnnRoom {
    size_t sums;             // [steps of a block][rows][wide]: the input's part, then all
    size_t h, c, late, end;  // [rows][padded]
} GatedRnnRoom;

GatedRnnRoom gated_rnn_room(const GatedRnnShape *s, const Version *v, const GatedRnnPlan *p,
                            uint32_t rows);
