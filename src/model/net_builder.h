// NetBuilder: builds a network layer by layer. It tracks the shape and the expected mean and mean
// square of every value and scales random weights so that activations keep variance 1 at any depth.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/graph.h"

typedef struct NetStat {
    float mean, square;  // expected mean and mean square, for inputs of mean 0 and variance 1
} NetStat;

typedef struct NetBuilder {
    Graph   *g;
    Rng      seed;
    NetStat *stats;  // [cap] by value
    uint32_t cap, depth;
    size_t   marks[8];    // where each scope begins in scope
    char     scope[120];  // prefix of names, "layer1.0."
} NetBuilder;

// 0 means 1 for kernel, stride, dilation and groups; kernel_w and pad_w default to kernel and pad.
// same: TensorFlow's SAME padding, output size = input size / stride, rounded up.
typedef struct NetConv {
    int64_t out, kernel, kernel_w, stride, pad, pad_w, dilation, groups;
    bool    bias, same;
} NetConv;

typedef struct NetPool {
    int64_t kernel, stride, pad;
    bool    same, ceil;
} NetPool;

typedef enum NetActivation {
    NET_LINEAR,
    NET_RELU,
    NET_RELU6,
    NET_LEAKY,  // slope 0.1
    NET_HSWISH,
    NET_HSIGMOID,
    NET_SIGMOID,
    NET_SILU,
    NET_TANH,
    NET_GELU,
} NetActivation;

void net_init(NetBuilder *n, Graph *g, uint64_t seed);

// Prefixes the names of what is added until net_pop_scope.
void net_push_scope(NetBuilder *n, const char *fmt, ...) PRINTF(2, 3);
void net_pop_scope(NetBuilder *n);

uint32_t net_input(NetBuilder *n, const char *name, DType t, int32_t rank, const int64_t *dims);
void     net_output(NetBuilder *n, uint32_t x, const char *name);  // renames x
int64_t  net_dim(const NetBuilder *n, uint32_t x, int32_t axis);

// Constants. A weight is uniform in mean +- spread, generated on demand from the seed and its name.
uint32_t net_weight(NetBuilder *n, const char *name, int32_t rank, const int64_t *dims, double mean,
                    double spread);
uint32_t net_const_ints(NetBuilder *n, const char *name, const int64_t *values, int64_t count);
uint32_t net_const_scalar(NetBuilder *n, float value);
uint32_t net_const(NetBuilder *n, const char *name, Tensor t);  // copies the data
void     net_set_expected(NetBuilder *n, uint32_t x, double mean, double square);

// Any operator. A name that exists already gets a number: relu, relu_1.
typedef struct NetNode {
    OpId            op;
    const char     *name;
    const uint32_t *in;
    uint32_t        n_in, n_attr;
    const Attr     *attrs;
    bool            second;  // returns the second output; the first is absent
} NetNode;
uint32_t net_node(NetBuilder *n, NetNode d, Tensor out, NetStat s);  // out: type of the output

typedef struct NetOutput {
    const char *name;  // NULL: absent
    Tensor      type;
    NetStat     stat;
} NetOutput;
// A node with several outputs; their values go to out[count]; d.second is not used.
void net_node_outputs(NetBuilder *n, NetNode d, const NetOutput *o, uint32_t count, uint32_t *out);
Attr net_attr_int(const char *name, int64_t value);
Attr net_attr_float(const char *name, float value);
Attr net_attr_str(const char *name, const char *value);
Attr net_attr_ints(const char *name, const int64_t *values, uint32_t count);

// Layers with weights, in net_layer.c; the weights are named NAME.weight, NAME.bias, ... A
// transposed convolution has its kernel as stride, a linear layer maps the last axis, an LSTM
// returns its last hidden state.
uint32_t net_conv(NetBuilder *n, const char *name, uint32_t x, NetConv c);
uint32_t net_conv_transpose(NetBuilder *n, const char *name, uint32_t x, NetConv c);
uint32_t net_batch_norm(NetBuilder *n, const char *name, uint32_t x, float epsilon);
uint32_t net_linear(NetBuilder *n, const char *name, uint32_t x, int64_t out);
uint32_t net_layer_norm(NetBuilder *n, const char *name, uint32_t x, float epsilon);
uint32_t net_embedding(NetBuilder *n, const char *name, uint32_t index, int64_t rows, int64_t width,
                       double rms);
uint32_t net_lstm(NetBuilder *n, const char *name, uint32_t x, int64_t hidden);

// Operators without weights, in net_op.c. Softmax is over the last axis, average pooling counts
// padding, dims of a reshape are ONNX's (0 copies, -1 is inferred), upsampling is nearest by 2,
// resizing bilinear.
uint32_t net_activation(NetBuilder *n, NetActivation f, uint32_t x);
uint32_t net_softmax(NetBuilder *n, uint32_t x);
uint32_t net_max_pool(NetBuilder *n, uint32_t x, NetPool p);
uint32_t net_avg_pool(NetBuilder *n, uint32_t x, NetPool p);
uint32_t net_global_pool(NetBuilder *n, uint32_t x);
uint32_t net_binary(NetBuilder *n, OpId op, const char *name, uint32_t a, uint32_t b);
uint32_t net_add(NetBuilder *n, uint32_t a, uint32_t b);
uint32_t net_mul(NetBuilder *n, uint32_t a, uint32_t b);
uint32_t net_matmul(NetBuilder *n, const char *name, uint32_t a, uint32_t b);
uint32_t net_concat(NetBuilder *n, const char *name, const uint32_t *xs, uint32_t count,
                    int32_t axis);
uint32_t net_reshape(NetBuilder *n, uint32_t x, int32_t rank, const int64_t *dims);
uint32_t net_flatten(NetBuilder *n, uint32_t x);  // to rank 2
uint32_t net_transpose(NetBuilder *n, uint32_t x, const int64_t *perm);
uint32_t net_slice(NetBuilder *n, uint32_t x, int64_t axis, int64_t start, int64_t end);
uint32_t net_gather(NetBuilder *n, const char *name, uint32_t data, uint32_t index, int32_t axis);
uint32_t net_upsample(NetBuilder *n, uint32_t x);
uint32_t net_resize(NetBuilder *n, uint32_t x, int64_t height, int64_t width);
