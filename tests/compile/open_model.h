// Models with open dimensions: networks are built for some size, then dimensions of their inputs
// are opened.
#pragma once

#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/net_builder.h"
#include "model/shaped_graph.h"

enum { OPEN_WORDS = 50, OPEN_PLACES = 160, OPEN_WIDTH = 32, OPEN_HEADS = 4 };

#define OPEN_MODEL static inline __attribute__((unused))

static const NetStat open_usual = {0, 1};

// Opens the dimensions of input i whose bits are set.
OPEN_MODEL void open_dims(Graph *g, uint32_t i, uint32_t bits) {
    Tensor *t = &g->values[g->inputs[i]].type;
    for (int32_t d = 0; d < t->rank; d++)
        if (bits >> d & 1) t->dims[d] = DIM_UNKNOWN;
}

OPEN_MODEL uint32_t open_by_head(NetBuilder *n, const char *name, uint32_t x, const int64_t *perm) {
    x = net_linear(n, name, x, OPEN_WIDTH);
    x = net_reshape(n, x, 4, (int64_t[]){0, 0, OPEN_HEADS, OPEN_WIDTH / OPEN_HEADS});
    return net_transpose(n, x, perm);
}

OPEN_MODEL uint32_t open_layer(NetBuilder *n, uint32_t x) {
    static const int64_t to_heads[] = {0, 2, 1, 3}, to_keys[] = {0, 2, 3, 1};
    uint32_t q = open_by_head(n, "q", x, to_heads), k = open_by_head(n, "k", x, to_keys);
    uint32_t y =
        net_softmax(n, net_mul(n, net_matmul(n, "scores", q, k), net_const_scalar(n, 0.35f)));
    y = net_transpose(n, net_matmul(n, "context", y, open_by_head(n, "v", x, to_heads)), to_heads);
    y = net_linear(n, "out", net_reshape(n, y, 3, (int64_t[]){0, 0, OPEN_WIDTH}), OPEN_WIDTH);
    x = net_layer_norm(n, "norm", net_add(n, y, x), 1e-5f);
    y = net_activation(n, NET_GELU, net_linear(n, "wide", x, 3 * OPEN_WIDTH + 5));
    return net_layer_norm(n, "norm2", net_add(n, net_linear(n, "narrow", y, OPEN_WIDTH), x), 1e-5f);
}

// The first rows of a table of places, as many as the input has columns: a constant of each length.
OPEN_MODEL uint32_t open_places(NetBuilder *n, uint32_t ids) {
    int64_t  one = 1, length = net_dim(n, ids, 1), dims[] = {OPEN_PLACES, OPEN_WIDTH};
    int64_t  cut[] = {length, OPEN_WIDTH};
    uint32_t shape = net_node(n, (NetNode){OP_Shape, "shape", &ids, 1, 0, NULL, false},
                              tensor_of(DT_I64, 1, (int64_t[]){2}, NULL), open_usual);
    uint32_t end = net_gather(n, "length", shape, net_const_ints(n, "one", &one, 1), 0);
    uint32_t in[] = {net_weight(n, "places", 2, dims, 0, 1),
                     net_const_ints(n, "from", (int64_t[]){0}, 1), end,
                     net_const_ints(n, "axis", (int64_t[]){0}, 1)};
    return net_node(n, (NetNode){OP_Slice, "slice", in, 4, 0, NULL, false},
                    tensor_of(DT_F32, 2, cut, NULL), open_usual);
}

// ids [batch, length], both open; an encoder of two layers.
OPEN_MODEL void open_encoder(Graph *g) {
    NetBuilder net, *n = &net;
    net_init(n, g, 5);
    uint32_t ids = net_input(n, "ids", DT_I64, 2, (int64_t[]){2, 8});
    uint32_t x = net_embedding(n, "words", ids, OPEN_WORDS, OPEN_WIDTH, 1);
    x = net_add(n, x, open_places(n, ids));
    for (int i = 0; i < 2; i++) {
        net_push_scope(n, "layer%d", i);
        x = open_layer(n, x);
        net_pop_scope(n);
    }
    net_output(n, x, "y");
    open_dims(g, 0, 3);
}

// image [1, 3, height, width], both open: direct, Winograd, depthwise and transposed convolution.
OPEN_MODEL void open_image(Graph *g) {
    NetBuilder net, *n = &net;
    net_init(n, g, 6);
    uint32_t x = net_input(n, "image", DT_F32, 4, (int64_t[]){1, 3, 16, 16});
    x = net_conv(n, "stem", x, (NetConv){.out = 24, .kernel = 3, .pad = 1, .bias = true});
    x = net_activation(n, NET_RELU, net_batch_norm(n, "norm", x, 1e-5f));
    uint32_t y = net_conv(n, "same", x, (NetConv){.out = 24, .kernel = 3, .pad = 1});
    x = net_activation(n, NET_RELU, net_add(n, net_batch_norm(n, "norm2", y, 1e-5f), x));
    x = net_conv(n, "depth", x, (NetConv){.out = 24, .kernel = 3, .pad = 1, .groups = 24});
    x = net_conv(n, "half", x, (NetConv){.out = 40, .kernel = 3, .stride = 2, .pad = 1});
    x = net_conv_transpose(n, "twice", x, (NetConv){.out = 12, .kernel = 2, .stride = 2});
    net_output(n, net_conv(n, "last", x, (NetConv){.out = 5, .kernel = 1, .bias = true}), "y");
    open_dims(g, 0, 12);
}

// x [length, batch, 9], both open.
OPEN_MODEL void open_lstm(Graph *g) {
    NetBuilder net, *n = &net;
    net_init(n, g, 8);
    uint32_t x = net_input(n, "x", DT_F32, 3, (int64_t[]){5, 2, 9});
    net_output(n, net_lstm(n, "lstm", x, 20), "y");
    open_dims(g, 0, 3);
}

OPEN_MODEL Err open_model_make(Model *m, void (*build)(Graph *g)) {
    TRY(model_init(m, "open"));
    build(m->graph);
    Err e = graph_sort(m->graph);
    if (e == ERR_OK) e = model_materialise(m);
    if (e == ERR_OK) e = fold_constants(m, interp_eval);
    return e;
}
