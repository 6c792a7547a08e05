// Spec: what a layer of each kind needs to know beyond its values, from lowering to binding.
#pragma once

#include "compile/ir.h"
#include "kernel/conv.h"
#include "kernel/gated_rnn.h"

// Sums with constant columns: convolutions of every sort and products with a constant matrix. What
// follows them per column and is linear moves into scale and shift.
typedef struct OutputChannels OutputChannels;

struct OutputChannels {
    uint32_t     n;       // output channels or columns
    uint32_t     weight;  // value
    const float *bias;    // [n] or NULL
    float       *scale;   // [n] or NULL: 1
    float       *shift;   // [n] or NULL: 0
};

typedef struct ConvSpec {
    OutputChannels columns;  // first, so that fusing finds it in any kind that has it
    ConvShape      shape;
    bool           plain_in;  // few channels: reads the plain layout
} ConvSpec;

typedef struct GemmSpec {
    OutputChannels columns;
    int64_t        m, k, n;
    bool           transposed;  // the weight is [n][k]
    float          alpha;
} GemmSpec;

typedef struct RnnSpec {
    GatedRnnShape   shape;
    GatedRnnWeights weights;
} RnnSpec;

// The window as two dimensions; one-dimensional ones get a height of 1. False: it does not fit.
struct SlidingWindow;
bool spec_window(const struct SlidingWindow *w, ConvShape *s);

// The axis along which a kind's columns lie in its output: channels, or the last one.
int32_t spec_channel_axis(IrKind k, const Tensor *out);

// How an argument of a chain lies along an output with that channel axis; false: in no simple way.
bool spec_arg_mode(const Tensor *arg, const Tensor *out, int32_t axis, ElementwiseMode *mode);
