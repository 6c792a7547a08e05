// Spec: parameters of a layer by kind, from lowering to binding.
#pragma once

#include "compile/ir.h"
#include "kernel/conv.h"
#include "kernel/gated_rnn.h"

// Constant weights of a convolution or matrix product, by output channel (column of the product). A
// per-channel scale or shift that follows is fused into them.
typedef struct OutputChannels {
    uint32_t     n;       // output channels
    uint32_t     weight;  // IR value
    const float *bias;    // [n] or NULL
    float       *scale;   // [n] or NULL: 1
    float       *shift;   // [n] or NULL: 0
} OutputChannels;

typedef struct ConvSpec {
    OutputChannels channels;  // first member, so that fusion finds it in any kind that has it
    ConvShape      shape;
    bool           plain_in;  // few input channels: reads the plain layout
} ConvSpec;

typedef struct GemmSpec {
    OutputChannels channels;
    int64_t        m, k, n;
    bool           transposed;  // the weight is [n][k] instead of [k][n]
    float          alpha;
} GemmSpec;

// Operands of a normalize layer: y = normalize(x + add + add_bias) * scale + bias; all but x may be
// IR_NONE.
enum {
    NORMALIZE_X,
    NORMALIZE_SCALE,
    NORMALIZE_BIAS,
    NORMALIZE_ADD,
    NORMALIZE_ADD_BIAS,
    NORMALIZE_OPERANDS
};

typedef struct RnnSpec {
    GatedRnnShape   shape;
    GatedRnnWeights weights;
} RnnSpec;

bool spec_dim_fits(int64_t dim);  // positive, and fast kernels support it

// The window in two dimensions, with height 1 if it has one. False: unsupported rank or size.
struct SlidingWindow;
bool spec_window(const struct SlidingWindow *w, ConvShape *s);

// The axis of a kind's output channels in its output: 1, or the last of a matrix product.
int32_t spec_channel_axis(IrKind k, const Tensor *out);

int32_t spec_concat_axis(const Ir *ir, const IrLayer *concat);

// How an element-wise argument is indexed along an output: per element, per channel or as a scalar.
// False: any other broadcast.
bool spec_arg_mode(const Tensor *arg, const Tensor *out, int32_t axis, ElementwiseMode *mode);
