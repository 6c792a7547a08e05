// Spec: parameters of a layer by kind, from lowering to binding.
#pragma once

#include "compile/ir.h"
#include "kernel/conv.h"
#include "kernel/gated_rnn.h"
#include "kernel/int8_conv.h"
#include "kernel/narrow_weights.h"
#include "kernel/pool.h"
#include "kernel/quantize.h"
#include "kernel/rotate_heads.h"
#include "model/params/attention.h"

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
    OutputChannels  channels;
    int64_t         m, k, n;
    bool            transposed;  // the weight is [n][k] instead of [k][n]
    float           alpha;
    GemmWeights     weights;  // not GEMM_F32: the numbers are in `blocks` or `half`
    uint32_t        block;
    BlockWeights    blocks;
    const uint16_t *half;
} GemmSpec;

// Operands of an attention layer; its spec is a FusedAttentionShape.
enum {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_MASK,
    ATTENTION_LENGTHS,
    ATTENTION_OPERANDS
};

// Operands of a rotary layer; lengths as those of GroupQueryAttention.
enum { ROTARY_X, ROTARY_COSINES, ROTARY_SINES, ROTARY_POSITIONS, ROTARY_LENGTHS, ROTARY_OPERANDS };

typedef struct RotarySpec {
    RotateShape    shape;
    size_t         x_at;   // float of the operand at which the heads begin
    GroupAttention group;  // checks the lengths; total 0: there are none
} RotarySpec;

// Operands of a cache layer; its results are the keys and the values.
enum {
    CACHE_KEYS,
    CACHE_VALUES,
    CACHE_OLD_KEYS,
    CACHE_OLD_VALUES,
    CACHE_LENGTHS,
    CACHE_COSINES,
    CACHE_SINES,
    CACHE_POSITIONS,
    CACHE_OPERANDS
};

typedef struct CacheSpec {
    CacheAppend    keys, values;  // without addresses
    size_t         k_at, v_at;    // floats of the operands at which their heads begin
    RotateShape    rotate;        // of the new keys; rotated 0: they are copied
    GroupAttention group;
} CacheSpec;

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

// Operands of a recurrent layer; all but x may be IR_NONE.
enum { RNN_X, RNN_H0, RNN_C0, RNN_LENS, RNN_OPERANDS };

typedef struct RnnSpec {
    GatedRnnShape   shape;
    GatedRnnWeights weights;
} RnnSpec;

// Convolution or product of bytes. Operands: x, and its zero point if that is computed.
typedef struct Int8Spec {
    Int8Shape           shape;
    uint32_t            weight;      // IR value: [oc][ic / groups][kh][kw], or a matrix
    bool                by_rows;     // the matrix is [k][n] instead of [n][k]
    const Tensor       *w_zero;      // one element or one per output channel; NULL: 0
    const int32_t      *bias;        // [oc] or NULL
    const float        *float_bias;  // [oc] or NULL: of float outputs
    const float        *scale;       // [oc]; NULL: 1
    Int8OutputKind      kind;
    float               lo, hi;  // of Int8Output
    int32_t             zero, x_zero;
    const Int8Residual *residual;  // of operand 1; or NULL
} Int8Spec;

// Operands of a quantize layer: x; scale and zero point if they are computed.
typedef struct QuantizeSpec {
    ByteScale to;
    bool      computed, to_pixels;
} QuantizeSpec;

// Argument i of the expression is operand i: bytes, floats, or one float. Output 0 is bytes, output
// 1 the floats before quantisation or IR_NONE.
typedef struct ByteElementwiseSpec {
    Expr      expr;
    ByteScale from[EWISE_MAX_ARGS], to;
} ByteElementwiseSpec;

typedef struct Int8PoolSpec {
    struct Pool pool;
    ByteScale   from, to;
} Int8PoolSpec;

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
