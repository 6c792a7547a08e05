// Token inputs and multi-head attention, shared by the BERTs.
#include <math.h>

#include "model/zoo_part.h"

static uint32_t additive_mask(Net *n, uint32_t mask) {
    Tensor   type = n->g->values[mask].type;
    int64_t  dims[4] = {type.dims[0], 1, 1, type.dims[1]};
    uint32_t in[2] = {mask, net_ints(n, "mask.axes", (int64_t[]){1, 2}, 2)};
    NetNode  unsqueeze = {OP_Unsqueeze, "mask.unsqueeze", in, 2, 0, NULL, false};
    uint32_t x = net_node(n, unsqueeze, tensor_of(DT_I64, 4, dims, NULL), (NetStat){1, 1});
    Attr     to = net_int("to", DT_F32);
    NetNode  cast = {OP_Cast, "mask.cast", &x, 1, 1, &to, false};
    x = net_node(n, cast, tensor_of(DT_F32, 4, dims, NULL), (NetStat){1, 1});
    x = net_binary(n, OP_Sub, "mask.sub", net_scalar(n, 1), x);
    return net_binary(n, OP_Mul, "mask.mul", x, net_scalar(n, -10000));
}

PartTokens part_tokens(Net *n, const ZooOptions *o) {
    int64_t    dims[2] = {o->batch, o->sequence};
    PartTokens t = {.sequence = o->sequence};
    t.ids = net_input(n, "input_ids", DT_I64, 2, dims);
    t.mask = additive_mask(n, net_input(n, "attention_mask", DT_I64, 2, dims));
    t.types = net_input(n, "token_type_ids", DT_I64, 2, dims);
    return t;
}

uint32_t part_positions(Net *n, int64_t sequence, int64_t hidden) {
    int64_t at[PART_POSITIONS];
    for (int64_t i = 0; i < sequence; i++) at[i] = i;
    uint32_t ids = net_ints(n, "position_ids", at, sequence);
    return net_embedding(n, "position_embeddings", ids, PART_POSITIONS, hidden, 1);
}

static uint32_t by_head(Net *n, const char *name, uint32_t x, int64_t heads, int64_t width,
                        const int64_t *perm) {
    x = net_linear(n, name, x, heads * width);
    net_enter(n, "%s", name);
    x = net_reshape(n, x, 4, (int64_t[]){0, 0, heads, width});
    x = net_transpose(n, x, perm);
    net_leave(n);
    return x;
}

static uint32_t context(Net *n, uint32_t query, uint32_t value, uint32_t mask, int64_t heads) {
    int64_t  width = net_dim(n, query, -1) / heads;
    uint32_t q = by_head(n, "query", query, heads, width, (int64_t[]){0, 2, 1, 3});
    uint32_t k = by_head(n, "key", query, heads, width, (int64_t[]){0, 2, 3, 1});
    uint32_t v = by_head(n, "value", value, heads, width, (int64_t[]){0, 2, 1, 3});
    uint32_t y = net_matmul(n, "scores", q, k);
    y = net_binary(n, OP_Div, "div", y, net_scalar(n, sqrtf((float)width)));
    y = net_softmax(n, net_add(n, y, mask));
    y = net_matmul(n, "context", y, v);
    y = net_transpose(n, y, (int64_t[]){0, 2, 1, 3});
    return net_reshape(n, y, 3, (int64_t[]){0, 0, heads * width});
}

// The result is a tenth of the stream it is added to. Were it as large, every layer of random
// weights would make the tokens more alike, until they are one.
uint32_t part_attention(Net *n, uint32_t query, uint32_t value, uint32_t mask, int64_t heads) {
    net_enter(n, "self");
    uint32_t y = context(n, query, value, mask, heads);
    net_leave(n);
    net_expect(n, y, 0, 10);
    y = net_linear(n, "output.dense", y, net_dim(n, query, -1));
    net_expect(n, y, 0, 0.1);
    return y;
}
