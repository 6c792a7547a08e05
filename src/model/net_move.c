// Layers that move elements, and the product of two activations.
#include "base/check.h"
#include "model/net.h"

uint32_t net_matmul(Net *n, const char *name, uint32_t a, uint32_t b) {
    uint32_t in[2] = {a, b};
    Tensor   out = n->g->values[a].type;
    float    depth = (float)net_dim(n, a, -1);
    CHECK(net_dim(n, a, -1) == net_dim(n, b, -2));
    out.dims[out.rank - 1] = net_dim(n, b, -1);
    NetNode d = {OP_MatMul, name, in, 2, 0, NULL, false};
    return net_node(n, d, out, (NetStat){0, depth * n->stats[a].square * n->stats[b].square});
}

uint32_t net_concat(Net *n, const char *name, const uint32_t *xs, uint32_t count, int32_t axis) {
    Tensor out = n->g->values[xs[0]].type;
    double mean = 0, square = 0, total = 0;
    for (uint32_t i = 0; i < count; i++) {
        double share = (double)net_dim(n, xs[i], axis);
        mean += share * (double)n->stats[xs[i]].mean;
        square += share * (double)n->stats[xs[i]].square;
        total += share;
    }
    out.dims[axis] = (int64_t)total;
    Attr    a = net_int("axis", axis);
    NetNode d = {OP_Concat, name, xs, count, 1, &a, false};
    return net_node(n, d, out, (NetStat){(float)(mean / total), (float)(square / total)});
}

uint32_t net_reshape(Net *n, uint32_t x, int32_t rank, const int64_t *dims) {
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
    uint32_t in[2] = {x, net_ints(n, "shape", dims, rank)};
    NetNode  d = {OP_Reshape, "reshape", in, 2, 0, NULL, false};
    return net_node(n, d, out, n->stats[x]);
}

uint32_t net_flatten(Net *n, uint32_t x) {
    int64_t batch = net_dim(n, x, 0);
    int64_t out[2] = {batch, tensor_count(&n->g->values[x].type) / batch};
    Attr    axis = net_int("axis", 1);
    NetNode d = {OP_Flatten, "flatten", &x, 1, 1, &axis, false};
    return net_node(n, d, tensor_of(n->g->values[x].type.dtype, 2, out, NULL), n->stats[x]);
}

uint32_t net_transpose(Net *n, uint32_t x, const int64_t *perm) {
    Tensor out = n->g->values[x].type;
    for (int32_t i = 0; i < out.rank; i++) out.dims[i] = net_dim(n, x, (int32_t)perm[i]);
    Attr    a = net_list("perm", perm, (uint32_t)out.rank);
    NetNode d = {OP_Transpose, "transpose", &x, 1, 1, &a, false};
    return net_node(n, d, out, n->stats[x]);
}

uint32_t net_slice(Net *n, uint32_t x, int64_t axis, int64_t start, int64_t end) {
    Tensor   out = n->g->values[x].type;
    uint32_t in[4] = {x, net_ints(n, "starts", &start, 1), net_ints(n, "ends", &end, 1),
                      net_ints(n, "axes", &axis, 1)};
    out.dims[axis] = end - start;
    NetNode d = {OP_Slice, "slice", in, 4, 0, NULL, false};
    return net_node(n, d, out, n->stats[x]);
}

uint32_t net_gather(Net *n, const char *name, uint32_t data, uint32_t index, int32_t axis) {
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
    Attr     a = net_int("axis", axis);
    NetNode  d = {OP_Gather, name, in, 2, 1, &a, false};
    return net_node(n, d, out, n->stats[data]);
}

static uint32_t floats(Net *n, const float *values, int64_t count) {
    float *data = arena_alloc(n->g->arena, (size_t)count, sizeof *data, TENSOR_ALIGN);
    for (int64_t i = 0; i < count; i++) data[i] = values[i];
    const char *name = arena_printf(n->g->arena, "%sscales", n->scope);
    return graph_const(n->g, name, tensor_of(DT_F32, 1, &count, data), NULL);
}

uint32_t net_upsample(Net *n, uint32_t x) {
    uint32_t in[3] = {x, NO_VALUE, floats(n, (float[]){1, 1, 2, 2}, 4)};
    Tensor   out = n->g->values[x].type;
    out.dims[2] *= 2;
    out.dims[3] *= 2;
    Attr    attrs[] = {net_str("mode", "nearest"), net_str("nearest_mode", "floor"),
                       net_str("coordinate_transformation_mode", "asymmetric")};
    NetNode d = {OP_Resize, "upsample", in, 3, 3, attrs, false};
    return net_node(n, d, out, n->stats[x]);
}

uint32_t net_resize(Net *n, uint32_t x, int64_t height, int64_t width) {
    Tensor out = n->g->values[x].type;
    out.dims[2] = height;
    out.dims[3] = width;
    uint32_t in[4] = {x, NO_VALUE, NO_VALUE, net_ints(n, "sizes", out.dims, 4)};
    Attr     attrs[] = {net_str("mode", "linear"),
                        net_str("coordinate_transformation_mode", "half_pixel")};
    NetNode  d = {OP_Resize, "resize", in, 4, 2, attrs, false};
    return net_node(n, d, out, n->stats[x]);
}
