// BERT (Devlin et al. 2018) and MobileBERT (Sun et al. 2020), uncased. BERT base ends with hidden
// states and pooler; BERT large with MLPerf's question-answering head, start and end logits per
// token.
#include <math.h>

#include "model/zoo/zoo.h"
#include "model/zoo/zoo_part.h"

enum { VOCABULARY = 30522, POSITIONS = 512 };

// mask: 0 where a token counts and -10000 where not, batch x 1 x 1 x sequence.
typedef struct Tokens {
    uint32_t ids, types, mask;
    int64_t  sequence;
} Tokens;

static uint32_t additive_mask(NetBuilder *n, uint32_t mask) {
    Tensor   type = n->g->values[mask].type;
    int64_t  dims[4] = {type.dims[0], 1, 1, type.dims[1]};
    uint32_t in[2] = {mask, net_const_ints(n, "mask.axes", (int64_t[]){1, 2}, 2)};
    NetNode  unsqueeze = {OP_Unsqueeze, "mask.unsqueeze", in, 2, 0, NULL, false};
    uint32_t x = net_node(n, unsqueeze, tensor_of(DT_I64, 4, dims, NULL), (NetStat){1, 1});
    Attr     to = net_attr_int("to", DT_F32);
    NetNode  cast = {OP_Cast, "mask.cast", &x, 1, 1, &to, false};
    x = net_node(n, cast, tensor_of(DT_F32, 4, dims, NULL), (NetStat){1, 1});
    x = net_binary(n, OP_Sub, "mask.sub", net_const_scalar(n, 1), x);
    return net_binary(n, OP_Mul, "mask.mul", x, net_const_scalar(n, -10000));
}

static Tokens token_inputs(NetBuilder *n, const ZooOptions *o) {
    int64_t dims[2] = {o->batch, o->sequence};
    Tokens  t = {.sequence = o->sequence};
    t.ids = net_input(n, "input_ids", DT_I64, 2, dims);
    t.mask = additive_mask(n, net_input(n, "attention_mask", DT_I64, 2, dims));
    t.types = net_input(n, "token_type_ids", DT_I64, 2, dims);
    return t;
}

static uint32_t position_embeddings(NetBuilder *n, int64_t sequence, int64_t hidden) {
    int64_t at[POSITIONS];
    for (int64_t i = 0; i < sequence; i++) at[i] = i;
    uint32_t ids = net_const_ints(n, "position_ids", at, sequence);
    return net_embedding(n, "position_embeddings", ids, POSITIONS, hidden, 1);
}

static uint32_t by_head(NetBuilder *n, const char *name, uint32_t x, int64_t heads, int64_t width,
                        const int64_t *perm) {
    x = net_linear(n, name, x, heads * width);
    net_push_scope(n, "%s", name);
    x = net_reshape(n, x, 4, (int64_t[]){0, 0, heads, width});
    x = net_transpose(n, x, perm);
    net_pop_scope(n);
    return x;
}

static uint32_t context(NetBuilder *n, uint32_t query, uint32_t value, uint32_t mask,
                        int64_t heads) {
    int64_t  width = net_dim(n, query, -1) / heads;
    uint32_t q = by_head(n, "query", query, heads, width, (int64_t[]){0, 2, 1, 3});
    uint32_t k = by_head(n, "key", query, heads, width, (int64_t[]){0, 2, 3, 1});
    uint32_t v = by_head(n, "value", value, heads, width, (int64_t[]){0, 2, 1, 3});
    uint32_t y = net_matmul(n, "scores", q, k);
    y = net_binary(n, OP_Div, "div", y, net_const_scalar(n, sqrtf((float)width)));
    y = net_softmax(n, net_add(n, y, mask));
    y = net_matmul(n, "context", y, v);
    y = net_transpose(n, y, (int64_t[]){0, 2, 1, 3});
    return net_reshape(n, y, 3, (int64_t[]){0, 0, heads * width});
}

// Expected to be a tenth of the residual stream: with random weights, attention output as large as
// the stream would make all tokens equal after a few layers.
static uint32_t attention(NetBuilder *n, uint32_t query, uint32_t value, uint32_t mask,
                          int64_t heads) {
    net_push_scope(n, "self");
    uint32_t y = context(n, query, value, mask, heads);
    net_pop_scope(n);
    net_set_expected(n, y, 0, 10);
    y = net_linear(n, "output.dense", y, net_dim(n, query, -1));
    net_set_expected(n, y, 0, 0.1);
    return y;
}

static uint32_t norm(NetBuilder *n, const char *name, uint32_t x) {
    return net_layer_norm(n, name, x, 1e-12f);
}

static uint32_t embeddings(NetBuilder *n, const Tokens *t, int64_t hidden) {
    net_push_scope(n, "embeddings");
    uint32_t x = net_embedding(n, "word_embeddings", t->ids, VOCABULARY, hidden, 1);
    uint32_t type = net_embedding(n, "token_type_embeddings", t->types, 2, hidden, 1);
    x = net_add(n, net_add(n, x, type), position_embeddings(n, t->sequence, hidden));
    x = norm(n, "LayerNorm", x);
    net_pop_scope(n);
    return x;
}

static uint32_t layer(NetBuilder *n, uint32_t x, uint32_t mask, int64_t hidden) {
    net_push_scope(n, "attention");
    uint32_t y = net_add(n, attention(n, x, x, mask, hidden / 64), x);
    y = norm(n, "output.LayerNorm", y);
    net_pop_scope(n);
    uint32_t z = net_activation(n, NET_GELU, net_linear(n, "intermediate.dense", y, 4 * hidden));
    z = net_add(n, net_linear(n, "output.dense", z, hidden), y);
    return norm(n, "output.LayerNorm", z);
}

static uint32_t bert(NetBuilder *n, const ZooOptions *o, int64_t hidden, int layers) {
    Tokens   t = token_inputs(n, o);
    uint32_t x = embeddings(n, &t, hidden);
    for (int i = 0; i < layers; i++) {
        net_push_scope(n, "encoder.layer.%d", i);
        x = layer(n, x, t.mask, hidden);
        net_pop_scope(n);
    }
    return x;
}

void zoo_bert_base(NetBuilder *n, const ZooOptions *o) {
    uint32_t x = bert(n, o, 768, 12);
    net_push_scope(n, "pooler");
    uint32_t first = net_reshape(n, net_slice(n, x, 1, 0, 1), 2, (int64_t[]){0, 768});
    uint32_t pooled = net_activation(n, NET_TANH, net_linear(n, "dense", first, 768));
    net_pop_scope(n);
    net_output(n, x, "last_hidden_state");
    net_output(n, pooled, "pooler_output");
}

void zoo_bert_large(NetBuilder *n, const ZooOptions *o) {
    uint32_t x = net_linear(n, "qa_outputs", bert(n, o, 1024, 24), 2);
    for (int64_t i = 0; i < 2; i++) {
        net_push_scope(n, "qa_outputs");
        uint32_t y = net_reshape(n, net_slice(n, x, 2, i, i + 1), 2, (int64_t[]){0, 0});
        net_pop_scope(n);
        net_output(n, y, i == 0 ? "start_logits" : "end_logits");
    }
}

// MobileBERT: 24 layers of width 128 in a residual stream of 512, four feed-forward blocks each,
// and a scale and shift per channel (NoNorm) instead of layer norm.

enum { HIDDEN = 512, INNER = 128, LAYERS = 24, HEADS = 4, PAIRS = 4 };

// NoNorm, with the scale that brings the expected mean square to 1.
static uint32_t no_norm(NetBuilder *n, const char *name, uint32_t x) {
    int64_t width = net_dim(n, x, -1);
    double  scale = 1 / sqrt((double)n->stats[x].square);
    net_push_scope(n, "%s", name);
    x = net_mul(n, x, net_weight(n, "weight", 1, &width, scale, 0.1 * scale));
    net_set_expected(n, x, 0, 1);
    x = net_add(n, x, net_weight(n, "bias", 1, &width, 0, 0.1));
    net_pop_scope(n);
    return x;
}

// x shifted by one token, with zeros at the end it leaves.
static uint32_t shifted(NetBuilder *n, uint32_t x, int64_t from, int64_t before, int64_t after) {
    int64_t  length = net_dim(n, x, 1), pads[6] = {0, before, 0, 0, after, 0};
    Tensor   type = n->g->values[x].type;
    NetStat  stat = n->stats[x];
    uint32_t in[2] = {net_slice(n, x, 1, from, from + length - 1),
                      net_const_ints(n, "pads", pads, 6)};
    return net_node(n, (NetNode){OP_Pad, "pad", in, 2, 0, NULL, false}, type, stat);
}

static uint32_t trigram(NetBuilder *n, uint32_t x) {
    uint32_t parts[3] = {shifted(n, x, 1, 0, 1), x, shifted(n, x, 0, 1, 0)};
    return net_concat(n, "trigram", parts, 3, 2);
}

static uint32_t mobilebert_embeddings(NetBuilder *n, const Tokens *t) {
    net_push_scope(n, "embeddings");
    uint32_t x = net_embedding(n, "word_embeddings", t->ids, VOCABULARY, INNER, 1);
    uint32_t type = net_embedding(n, "token_type_embeddings", t->types, 2, HIDDEN, 1);
    x = net_linear(n, "embedding_transformation", trigram(n, x), HIDDEN);
    x = net_add(n, net_add(n, x, position_embeddings(n, t->sequence, HIDDEN)), type);
    x = no_norm(n, "LayerNorm", x);
    net_pop_scope(n);
    return x;
}

static uint32_t narrowed(NetBuilder *n, const char *name, uint32_t x) {
    net_push_scope(n, "bottleneck.%s", name);
    x = no_norm(n, "LayerNorm", net_linear(n, "dense", x, INNER));
    net_pop_scope(n);
    return x;
}

static uint32_t bottleneck_attention(NetBuilder *n, uint32_t query, uint32_t value, uint32_t rest,
                                     uint32_t mask) {
    net_push_scope(n, "attention");
    uint32_t y = net_add(n, attention(n, query, value, mask, HEADS), rest);
    y = no_norm(n, "output.LayerNorm", y);
    net_pop_scope(n);
    return y;
}

static uint32_t pair(NetBuilder *n, uint32_t x) {
    uint32_t y = net_activation(n, NET_RELU, net_linear(n, "intermediate.dense", x, HIDDEN));
    y = net_add(n, net_linear(n, "output.dense", y, INNER), x);
    return no_norm(n, "output.LayerNorm", y);
}

static uint32_t mobilebert_layer(NetBuilder *n, uint32_t x, uint32_t mask) {
    uint32_t rest = narrowed(n, "input", x), query = narrowed(n, "attention", x);
    uint32_t y = bottleneck_attention(n, query, x, rest, mask);
    for (int i = 0; i < PAIRS - 1; i++) {
        net_push_scope(n, "ffn.%d", i);
        y = pair(n, y);
        net_pop_scope(n);
    }
    y = pair(n, y);
    net_push_scope(n, "output.bottleneck");
    y = no_norm(n, "LayerNorm", net_add(n, net_linear(n, "dense", y, HIDDEN), x));
    net_pop_scope(n);
    return y;
}

void zoo_mobile_bert(NetBuilder *n, const ZooOptions *o) {
    Tokens   t = token_inputs(n, o);
    uint32_t x = mobilebert_embeddings(n, &t);
    for (int i = 0; i < LAYERS; i++) {
        net_push_scope(n, "encoder.layer.%d", i);
        x = mobilebert_layer(n, x, t.mask);
        net_pop_scope(n);
    }
    uint32_t pooled = net_reshape(n, net_slice(n, x, 1, 0, 1), 2, (int64_t[]){0, HIDDEN});
    net_output(n, x, "last_hidden_state");
    net_output(n, pooled, "pooler_output");
}
