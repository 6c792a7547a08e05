// Layers with weights. Weights are scaled by the expected mean square of the input so that the
// output has variance 1; the running statistics of batch norms are the expected ones.
#include <math.h>
#include <stddef.h>

#include "base/err.h"
#include "model/net_builder.h"

static const double jitter = 0.1;  // spread of biases and normalisation weights

static int64_t or1(int64_t x) { return x == 0 ? 1 : x; }

static uint32_t scaled(NetBuilder *n, const char *name, int32_t rank, const int64_t *dims,
                       double fan_in, uint32_t x) {
    double square = (double)n->stats[x].square;
    return net_weight(n, name, rank, dims, 0, sqrt(3 / (fan_in * square)));
}

static uint32_t bias(NetBuilder *n, int64_t count) {
    return net_weight(n, "bias", 1, &count, 0, jitter);
}

// One axis of a convolution: padding before and after, output size, and the share of taps that lie
// on the image rather than on padding.
typedef struct Span {
    int64_t before, after, out;
    double  covered;
} Span;

static double covered(const Span *s, int64_t in, int64_t kernel, const NetConv *c) {
    int64_t inside = 0;
    for (int64_t i = 0; i < s->out; i++)
        for (int64_t k = 0; k < kernel; k++) {
            int64_t at = i * or1(c->stride) - s->before + k * or1(c->dilation);
            inside += at >= 0 && at < in;
        }
    return (double)inside / (double)(s->out * kernel);
}

static Span conv_span(int64_t in, int64_t kernel, int64_t pad, const NetConv *c) {
    int64_t stride = or1(c->stride), reach = or1(c->dilation) * (kernel - 1) + 1;
    Span    s = {pad, pad, 0, 1};
    if (c->same) {
        int64_t total = ((in + stride - 1) / stride - 1) * stride + reach - in;
        s.before = total > 0 ? total / 2 : 0;
        s.after = total > 0 ? total - s.before : 0;
    }
    s.out = (in + s.before + s.after - reach) / stride + 1;
    s.covered = covered(&s, in, kernel, c);
    return s;
}

static uint32_t conv_node(NetBuilder *n, const char *name, const uint32_t *in, const NetConv *c,
                          const int64_t *kernel, Span h, Span w) {
    int64_t strides[2] = {or1(c->stride), or1(c->stride)};
    int64_t dilations[2] = {or1(c->dilation), or1(c->dilation)};
    int64_t pads[4] = {h.before, w.before, h.after, w.after};
    int64_t out[4] = {net_dim(n, in[0], 0), c->out, h.out, w.out};
    Attr attrs[] = {net_attr_ints("dilations", dilations, 2), net_attr_int("group", or1(c->groups)),
                    net_attr_ints("kernel_shape", kernel, 2), net_attr_ints("pads", pads, 4),
                    net_attr_ints("strides", strides, 2)};
    NetNode d = {OP_Conv, name, in, c->bias ? 3 : 2, 5, attrs, false};
    return net_node(n, d, tensor_of(DT_F32, 4, out, NULL), (NetStat){0, 1});
}

uint32_t net_conv(NetBuilder *n, const char *name, uint32_t x, NetConv c) {
    int64_t kernel[2] = {or1(c.kernel), c.kernel_w != 0 ? c.kernel_w : or1(c.kernel)};
    int64_t pad_w = c.kernel_w != 0 ? c.pad_w : c.pad;
    Span    h = conv_span(net_dim(n, x, 2), kernel[0], c.pad, &c);
    Span    w = conv_span(net_dim(n, x, 3), kernel[1], pad_w, &c);
    int64_t per_group = net_dim(n, x, 1) / or1(c.groups);
    int64_t dims[4] = {c.out, per_group, kernel[0], kernel[1]};
    net_push_scope(n, "%s", name);
    uint32_t in[3] = {x, 0, 0};
    double   fan_in = (double)(per_group * kernel[0] * kernel[1]) * h.covered * w.covered;
    in[1] = scaled(n, "weight", 4, dims, fan_in, x);
    if (c.bias) in[2] = bias(n, c.out);
    net_pop_scope(n);
    return conv_node(n, name, in, &c, kernel, h, w);
}

uint32_t net_conv_transpose(NetBuilder *n, const char *name, uint32_t x, NetConv c) {
    int64_t k = c.kernel, in_channels = net_dim(n, x, 1);
    int64_t dims[4] = {in_channels, c.out, k, k}, kernel[2] = {k, k};
    int64_t out[4] = {net_dim(n, x, 0), c.out, net_dim(n, x, 2) * k, net_dim(n, x, 3) * k};
    net_push_scope(n, "%s", name);
    uint32_t weight = scaled(n, "weight", 4, dims, (double)in_channels, x);
    uint32_t in[3] = {x, weight, bias(n, c.out)};
    net_pop_scope(n);
    Attr attrs[] = {net_attr_ints("kernel_shape", kernel, 2), net_attr_ints("strides", kernel, 2)};
    NetNode d = {OP_ConvTranspose, name, in, 3, 2, attrs, false};
    return net_node(n, d, tensor_of(DT_F32, 4, out, NULL), (NetStat){0, 1});
}

uint32_t net_batch_norm(NetBuilder *n, const char *name, uint32_t x, float epsilon) {
    int64_t channels = net_dim(n, x, 1);
    double  mean = (double)n->stats[x].mean;
    double  var = (double)n->stats[x].square - mean * mean;
    net_push_scope(n, "%s", name);
    uint32_t in[5] = {x};
    in[1] = net_weight(n, "weight", 1, &channels, 1, jitter);
    in[2] = bias(n, channels);
    in[3] = net_weight(n, "running_mean", 1, &channels, mean, jitter * sqrt(var));
    in[4] = net_weight(n, "running_var", 1, &channels, var, jitter * var);
    net_pop_scope(n);
    Attr    attrs[] = {net_attr_float("epsilon", epsilon)};
    NetNode d = {OP_BatchNormalization, name, in, 5, 1, attrs, false};
    return net_node(n, d, n->g->values[x].type, (NetStat){0, 1.0134f});  // 1 + 4 jitter^2 / 3
}

static uint32_t gemm(NetBuilder *n, const char *name, uint32_t x, int64_t out) {
    int64_t  dims[2] = {out, net_dim(n, x, 1)}, shape[2] = {net_dim(n, x, 0), out};
    uint32_t in[3] = {x, 0, 0};
    net_push_scope(n, "%s", name);
    in[1] = scaled(n, "weight", 2, dims, (double)dims[1], x);
    in[2] = bias(n, out);
    net_pop_scope(n);
    Attr    attrs[] = {net_attr_int("transB", 1)};
    NetNode d = {OP_Gemm, name, in, 3, 1, attrs, false};
    return net_node(n, d, tensor_of(DT_F32, 2, shape, NULL), (NetStat){0, 1});
}

uint32_t net_linear(NetBuilder *n, const char *name, uint32_t x, int64_t out) {
    if (n->g->values[x].type.rank == 2) return gemm(n, name, x, out);
    int64_t dims[2] = {net_dim(n, x, -1), out};
    net_push_scope(n, "%s", name);
    uint32_t weight = scaled(n, "weight", 2, dims, (double)dims[0], x), b = bias(n, out);
    uint32_t y = net_matmul(n, "matmul", x, weight);
    y = net_binary(n, OP_Add, "add", y, b);
    net_pop_scope(n);
    return y;
}

uint32_t net_layer_norm(NetBuilder *n, const char *name, uint32_t x, float epsilon) {
    int64_t width = net_dim(n, x, -1);
    net_push_scope(n, "%s", name);
    uint32_t weight = net_weight(n, "weight", 1, &width, 1, jitter);
    uint32_t in[3] = {x, weight, bias(n, width)};
    net_pop_scope(n);
    Attr    attrs[] = {net_attr_int("axis", -1), net_attr_float("epsilon", epsilon)};
    NetNode d = {OP_LayerNormalization, name, in, 3, 2, attrs, false};
    return net_node(n, d, n->g->values[x].type, (NetStat){0, 1});
}

uint32_t net_embedding(NetBuilder *n, const char *name, uint32_t index, int64_t rows, int64_t width,
                       double rms) {
    int64_t dims[2] = {rows, width};
    net_push_scope(n, "%s", name);
    uint32_t table = net_weight(n, "weight", 2, dims, 0, rms * sqrt(3));
    net_pop_scope(n);
    return net_gather(n, name, table, index, 0);
}

uint32_t net_lstm(NetBuilder *n, const char *name, uint32_t x, int64_t hidden) {
    int64_t in_dims[3] = {1, 4 * hidden, net_dim(n, x, 2)}, state_dims[3] = {1, 4 * hidden, hidden};
    int64_t bias_dims[2] = {1, 8 * hidden}, out[3] = {1, net_dim(n, x, 1), hidden};
    net_push_scope(n, "%s", name);
    uint32_t in[4] = {x, 0, 0, 0};
    in[1] = scaled(n, "weight_ih", 3, in_dims, (double)in_dims[2], x);
    in[2] = net_weight(n, "weight_hh", 3, state_dims, 0, sqrt(3.0 / (double)hidden));
    in[3] = net_weight(n, "bias", 2, bias_dims, 0, jitter);
    net_pop_scope(n);
    Attr    attrs[] = {net_attr_int("hidden_size", hidden)};
    NetNode d = {OP_LSTM, name, in, 4, 1, attrs, true};
    return net_node(n, d, tensor_of(DT_F32, 3, out, NULL), (NetStat){0, 0.1f});
}
