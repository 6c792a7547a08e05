// Operators without weights: activations, pooling, element-wise operators, matrix products and data
// movement, each with its effect on the expected mean and mean square. Activations are integrated
// over a logistic distribution, because activations of random networks have heavier tails than
// normal ones.
#include <math.h>

#include "base/err.h"
#include "model/net_builder.h"

typedef double ActFn(double x);

static double relu(double x) { return x > 0 ? x : 0; }
static double relu6(double x) { return fmin(relu(x), 6); }
static double leaky(double x) { return x > 0 ? x : 0.1 * x; }
static double hsigmoid(double x) { return fmin(relu(x / 6 + 0.5), 1); }
static double hswish(double x) { return x * hsigmoid(x); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }
static double gelu(double x) { return 0.5 * x * (1 + erf(x * 0.70710678118654752)); }

static NetStat activated(ActFn *f, NetStat s) {
    double mean = 0, square = 0, total = 0, m = (double)s.mean;
    double sd = sqrt(fmax((double)s.square - m * m, 0));
    for (int i = -30; i <= 30; i++) {
        double z = i / 5.0, w = pow(cosh(z * 0.9069), -2), y = f(m + sd * z);
        mean += w * y;
        square += w * y * y;
        total += w;
    }
    return (NetStat){(float)(mean / total), (float)(square / total)};
}

static uint32_t unary(NetBuilder *n, OpId op, const char *name, uint32_t x, ActFn *f) {
    NetNode d = {op, name, &x, 1, 0, NULL, false};
    return net_node(n, d, n->g->values[x].type, activated(f, n->stats[x]));
}

static uint32_t unary_with(NetBuilder *n, OpId op, const char *name, uint32_t x, ActFn *f, Attr a) {
    NetNode d = {op, name, &x, 1, 1, &a, false};
    return net_node(n, d, n->g->values[x].type, activated(f, n->stats[x]));
}

static uint32_t clip6(NetBuilder *n, uint32_t x) {
    uint32_t in[3] = {x, net_const_scalar(n, 0), net_const_scalar(n, 6)};
    NetNode  d = {OP_Clip, "relu6", in, 3, 0, NULL, false};
    return net_node(n, d, n->g->values[x].type, activated(relu6, n->stats[x]));
}

static uint32_t silu_nodes(NetBuilder *n, uint32_t x) {
    NetStat  s = activated(silu, n->stats[x]);
    uint32_t y = net_mul(n, x, unary(n, OP_Sigmoid, "sigmoid", x, sigmoid));
    net_set_expected(n, y, (double)s.mean, (double)s.square);
    return y;
}

static uint32_t gelu_nodes(NetBuilder *n, uint32_t x) {
    NetStat  s = activated(gelu, n->stats[x]);
    uint32_t y = net_binary(n, OP_Div, "div", x, net_const_scalar(n, 1.41421354f));
    y = unary(n, OP_Erf, "erf", y, erf);
    y = net_add(n, y, net_const_scalar(n, 1));
    y = net_mul(n, net_mul(n, x, y), net_const_scalar(n, 0.5f));
    net_set_expected(n, y, (double)s.mean, (double)s.square);
    return y;
}

uint32_t net_activation(NetBuilder *n, NetActivation f, uint32_t x) {
    switch (f) {
    case NET_LINEAR: break;
    case NET_RELU: return unary(n, OP_Relu, "relu", x, relu);
    case NET_RELU6: return clip6(n, x);
    case NET_LEAKY:
        return unary_with(n, OP_LeakyRelu, "leaky", x, leaky, net_attr_float("alpha", 0.1f));
    case NET_HSWISH: return unary(n, OP_HardSwish, "hswish", x, hswish);
    case NET_HSIGMOID:
        return unary_with(n, OP_HardSigmoid, "hsigmoid", x, hsigmoid,
                          net_attr_float("alpha", 1.0f / 6));
    case NET_SIGMOID: return unary(n, OP_Sigmoid, "sigmoid", x, sigmoid);
    case NET_SILU: return silu_nodes(n, x);
    case NET_TANH: return unary(n, OP_Tanh, "tanh", x, tanh);
    case NET_GELU: return gelu_nodes(n, x);
    }
    return x;
}

uint32_t net_softmax(NetBuilder *n, uint32_t x) {
    Attr    axis = net_attr_int("axis", -1);
    float   share = 1 / (float)net_dim(n, x, -1);
    NetNode d = {OP_Softmax, "softmax", &x, 1, 1, &axis, false};
    return net_node(n, d, n->g->values[x].type, (NetStat){share, 2 * share * share});
}

static int64_t pooled(int64_t in, const NetPool *p) {
    if (p->same) return (in + p->stride - 1) / p->stride;
    return (in + 2 * p->pad - p->kernel + (p->ceil ? p->stride - 1 : 0)) / p->stride + 1;
}

// With same padding an odd row or column goes behind the image.
static uint32_t pool(NetBuilder *n, OpId op, const char *name, uint32_t x, NetPool p, NetStat s) {
    int64_t size[2] = {net_dim(n, x, 2), net_dim(n, x, 3)};
    int64_t out[4] = {net_dim(n, x, 0), net_dim(n, x, 1), pooled(size[0], &p), pooled(size[1], &p)};
    int64_t pads[4] = {p.pad, p.pad, p.pad, p.pad};
    for (int i = 0; p.same && i < 2; i++) {
        int64_t total = (out[2 + i] - 1) * p.stride + p.kernel - size[i];
        pads[i] = total / 2;
        pads[2 + i] = total - total / 2;
    }
    int64_t kernel[2] = {p.kernel, p.kernel}, strides[2] = {p.stride, p.stride};
    Attr    attrs[5] = {net_attr_int("ceil_mode", p.ceil), net_attr_ints("kernel_shape", kernel, 2),
                        net_attr_ints("pads", pads, 4), net_attr_ints("strides", strides, 2),
                        net_attr_int("count_include_pad", 1)};
    NetNode d = {op, name, &x, 1, op == OP_AveragePool ? 5 : 4, attrs, false};
    return net_node(n, d, tensor_of(DT_F32, 4, out, NULL), s);
}

// The maximum of a window of rectified noise lies `lift` standard deviations above the mean; for
// smoother activations less.
uint32_t net_max_pool(NetBuilder *n, uint32_t x, NetPool p) {
    double  lift = p.kernel == 2 ? 0.7 : 1.2;
    double  mean = (double)n->stats[x].mean;
    double  var = fmax((double)n->stats[x].square - mean * mean, 0);
    double  now = mean + lift * sqrt(var);
    NetStat s = {(float)now, (float)(now * now + var)};
    return pool(n, OP_MaxPool, "maxpool", x, p, s);
}

// rest: the share of the variance that averaging leaves.
static NetStat averaged(NetStat s, float rest) {
    float mean = s.mean;
    return (NetStat){mean, mean * mean + rest * (s.square - mean * mean)};
}

uint32_t net_avg_pool(NetBuilder *n, uint32_t x, NetPool p) {
    return pool(n, OP_AveragePool, "avgpool", x, p, averaged(n->stats[x], 0.9f));
}

uint32_t net_global_pool(NetBuilder *n, uint32_t x) {
    int64_t out[4] = {net_dim(n, x, 0), net_dim(n, x, 1), 1, 1};
    NetNode d = {OP_GlobalAveragePool, "avgpool", &x, 1, 0, NULL, false};
    return net_node(n, d, tensor_of(DT_F32, 4, out, NULL), averaged(n->stats[x], 0.5f));
}

static NetStat combined(OpId op, NetStat a, NetStat b) {
    if (op == OP_Mul) return (NetStat){a.mean * b.mean, a.square * b.square};
    if (op == OP_Div) return (NetStat){a.mean / b.mean, a.square / b.square};
    float sign = op == OP_Sub ? -1 : 1, mean = a.mean + sign * b.mean;
    return (NetStat){mean, a.square + b.square + 2 * sign * a.mean * b.mean};
}

uint32_t net_binary(NetBuilder *n, OpId op, const char *name, uint32_t a, uint32_t b) {
    const Tensor *x = &n->g->values[a].type, *y = &n->g->values[b].type;
    Tensor        out = x->rank >= y->rank ? *x : *y;
    for (int32_t i = 1; i <= out.rank; i++) {
        int64_t p = i <= x->rank ? x->dims[x->rank - i] : 1;
        int64_t q = i <= y->rank ? y->dims[y->rank - i] : 1;
        CHECK(p == q || p == 1 || q == 1);
        out.dims[out.rank - i] = p == 1 ? q : p;
    }
    uint32_t in[2] = {a, b};
    NetNode  d = {op, name, in, 2, 0, NULL, false};
    out.data = NULL;
    return net_node(n, d, out, combined(op, n->stats[a], n->stats[b]));
}

uint32_t net_add(NetBuilder *n, uint32_t a, uint32_t b) {
    return net_binary(n, OP_Add, "add", a, b);
}
uint32_t net_mul(NetBuilder *n, uint32_t a, uint32_t b) {
    return net_binary(n, OP_Mul, "mul", a, b);
}

uint32_t net_matmul(NetBuilder *n, const char *name, uint32_t a, uint32_t b) {
    uint32_t in[2] = {a, b};
    Tensor   out = n->g->values[a].type;
    float    depth = (float)net_dim(n, a, -1);
    CHECK(net_dim(n, a, -1) == net_dim(n, b, -2));
    out.dims[out.rank - 1] = net_dim(n, b, -1);
    NetNode d = {OP_MatMul, name, in, 2, 0, NULL, false};
    return net_node(n, d, out, (NetStat){0, depth * n->stats[a].square * n->stats[b].square});
}

uint32_t net_concat(NetBuilder *n, const char *name, const uint32_t *xs, uint32_t count,
                    int32_t axis) {
    Tensor out = n->g->values[xs[0]].type;
    double mean = 0, square = 0, total = 0;
    for (uint32_t i = 0; i < count; i++) {
        double share = (double)net_dim(n, xs[i], axis);
        mean += share * (double)n->stats[xs[i]].mean;
        square += share * (double)n->stats[xs[i]].square;
        total += share;
    }
    out.dims[axis] = (int64_t)total;
    Attr    a = net_attr_int("axis", axis);
    NetNode d = {OP_Concat, name, xs, count, 1, &a, false};
    return net_node(n, d, out, (NetStat){(float)(mean / total), (float)(square / total)});
}

uint32_t net_reshape(NetBuilder *n, uint32_t x, int32_t rank, const int64_t *dims) {
    Tensor  out = tensor_of(n->g->values[x].type.dtype, rank, dims, NULL);
    int64_t left = tensor_count(&n->g->values[x].type), *open = NULL;
    for (int32_t i = 0; i < rank; i++) {
        if (out.dims[i] == 0) out.dims[i] = net_dim(n, x, i);
        if (out.dims[i] == -1)
            open = &out.dims[i];
        else
            left /= out.dims[i];
    }
    if (open != NULL) *open = left;
    uint32_t in[2] = {x, net_const_ints(n, "shape", dims, rank)};
    NetNode  d = {OP_Reshape, "reshape", in, 2, 0, NULL, false};
    return net_node(n, d, out, n->stats[x]);
}

uint32_t net_flatten(NetBuilder *n, uint32_t x) {
    int64_t batch = net_dim(n, x, 0);
    int64_t out[2] = {batch, tensor_count(&n->g->values[x].type) / batch};
    Attr    axis = net_attr_int("axis", 1);
    NetNode d = {OP_Flatten, "flatten", &x, 1, 1, &axis, false};
    return net_node(n, d, tensor_of(n->g->values[x].type.dtype, 2, out, NULL), n->stats[x]);
}

uint32_t net_transpose(NetBuilder *n, uint32_t x, const int64_t *perm) {
    Tensor out = n->g->values[x].type;
    for (int32_t i = 0; i < out.rank; i++) out.dims[i] = net_dim(n, x, (int32_t)perm[i]);
    Attr    a = net_attr_ints("perm", perm, (uint32_t)out.rank);
    NetNode d = {OP_Transpose, "transpose", &x, 1, 1, &a, false};
    return net_node(n, d, out, n->stats[x]);
}

uint32_t net_slice(NetBuilder *n, uint32_t x, int64_t axis, int64_t start, int64_t end) {
    Tensor   out = n->g->values[x].type;
    uint32_t in[4] = {x, net_const_ints(n, "starts", &start, 1), net_const_ints(n, "ends", &end, 1),
                      net_const_ints(n, "axes", &axis, 1)};
    out.dims[axis] = end - start;
    NetNode d = {OP_Slice, "slice", in, 4, 0, NULL, false};
    return net_node(n, d, out, n->stats[x]);
}

uint32_t net_gather(NetBuilder *n, const char *name, uint32_t data, uint32_t index, int32_t axis) {
    const Tensor *t = &n->g->values[data].type, *at = &n->g->values[index].type;
    Tensor        out = tensor_of(t->dtype, t->rank - 1 + at->rank, at->dims, NULL);
    for (int32_t i = 0; i < out.rank; i++) {
        if (i < axis)
            out.dims[i] = t->dims[i];
        else if (i < axis + at->rank)
            out.dims[i] = at->dims[i - axis];
        else
            out.dims[i] = t->dims[i - at->rank + 1];
    }
    uint32_t in[2] = {data, index};
    Attr     a = net_attr_int("axis", axis);
    NetNode  d = {OP_Gather, name, in, 2, 1, &a, false};
    return net_node(n, d, out, n->stats[data]);
}

static uint32_t floats(NetBuilder *n, const float *values, int64_t count) {
    float *data = arena_alloc(n->g->arena, (size_t)count, sizeof *data, TENSOR_ALIGN);
    for (int64_t i = 0; i < count; i++) data[i] = values[i];
    const char *name = arena_printf(n->g->arena, "%sscales", n->scope);
    return graph_const(n->g, name, tensor_of(DT_F32, 1, &count, data), NULL);
}

uint32_t net_upsample(NetBuilder *n, uint32_t x) {
    uint32_t in[3] = {x, NO_VALUE, floats(n, (float[]){1, 1, 2, 2}, 4)};
    Tensor   out = n->g->values[x].type;
    out.dims[2] *= 2;
    out.dims[3] *= 2;
    Attr    attrs[] = {net_attr_str("mode", "nearest"), net_attr_str("nearest_mode", "floor"),
                       net_attr_str("coordinate_transformation_mode", "asymmetric")};
    NetNode d = {OP_Resize, "upsample", in, 3, 3, attrs, false};
    return net_node(n, d, out, n->stats[x]);
}

uint32_t net_resize(NetBuilder *n, uint32_t x, int64_t height, int64_t width) {
    Tensor out = n->g->values[x].type;
    out.dims[2] = height;
    out.dims[3] = width;
    uint32_t in[4] = {x, NO_VALUE, NO_VALUE, net_const_ints(n, "sizes", out.dims, 4)};
    Attr     attrs[] = {net_attr_str("mode", "linear"),
                        net_attr_str("coordinate_transformation_mode", "half_pixel")};
    NetNode  d = {OP_Resize, "resize", in, 4, 2, attrs, false};
    return net_node(n, d, out, n->stats[x]);
}
