// MobileBERT (Sun et al. 2020), uncased: 24 thin layers of width 128 inside a stream of 512, four
// feed-forward pairs each, and a scale and shift per channel where BERT normalises.
#include <math.h>

#include "model/zoo.h"
#include "model/zoo_part.h"

enum { HIDDEN = 512, INNER = 128, LAYERS = 24, HEADS = 4, PAIRS = 4 };

// The scale brings what is expected back to 1, which training has to find in the real network.
static uint32_t no_norm(Net *n, const char *name, uint32_t x) {
    int64_t width = net_dim(n, x, -1);
    double  scale = 1 / sqrt((double)n->stats[x].square);
    net_enter(n, "%s", name);
    x = net_mul(n, x, net_weight(n, "weight", 1, &width, scale, 0.1 * scale));
    net_expect(n, x, 0, 1);
    x = net_add(n, x, net_weight(n, "bias", 1, &width, 0, 0.1));
    net_leave(n);
    return x;
}

// Neighbouring tokens side by side: the next, this one, the one before; zeros past the ends.
static uint32_t shifted(Net *n, uint32_t x, int64_t from, int64_t before, int64_t after) {
    int64_t  length = net_dim(n, x, 1), pads[6] = {0, before, 0, 0, after, 0};
    Tensor   type = n->g->values[x].type;
    NetStat  stat = n->stats[x];
    uint32_t in[2] = {net_slice(n, x, 1, from, from + length - 1), net_ints(n, "pads", pads, 6)};
    return net_node(n, (NetNode){OP_Pad, "pad", in, 2, 0, NULL, false}, type, stat);
}

static uint32_t trigram(Net *n, uint32_t x) {
    uint32_t parts[3] = {shifted(n, x, 1, 0, 1), x, shifted(n, x, 0, 1, 0)};
    return net_concat(n, "trigram", parts, 3, 2);
}

static uint32_t embeddings(Net *n, const PartTokens *t) {
    net_enter(n, "embeddings");
    uint32_t x = net_embedding(n, "word_embeddings", t->ids, PART_WORDS, INNER, 1);
    uint32_t type = net_embedding(n, "token_type_embeddings", t->types, 2, HIDDEN, 1);
    x = net_linear(n, "embedding_transformation", trigram(n, x), HIDDEN);
    x = net_add(n, net_add(n, x, part_positions(n, t->sequence, HIDDEN)), type);
    x = no_norm(n, "LayerNorm", x);
    net_leave(n);
    return x;
}

static uint32_t narrowed(Net *n, const char *name, uint32_t x) {
    net_enter(n, "bottleneck.%s", name);
    x = no_norm(n, "LayerNorm", net_linear(n, "dense", x, INNER));
    net_leave(n);
    return x;
}

static uint32_t attend(Net *n, uint32_t query, uint32_t value, uint32_t rest, uint32_t mask) {
    net_enter(n, "attention");
    uint32_t y = net_add(n, part_attention(n, query, value, mask, HEADS), rest);
    y = no_norm(n, "output.LayerNorm", y);
    net_leave(n);
    return y;
}

static uint32_t pair(Net *n, uint32_t x) {
    uint32_t y = net_act(n, NET_RELU, net_linear(n, "intermediate.dense", x, HIDDEN));
    y = net_add(n, net_linear(n, "output.dense", y, INNER), x);
    return no_norm(n, "output.LayerNorm", y);
}

static uint32_t layer(Net *n, uint32_t x, uint32_t mask) {
    uint32_t rest = narrowed(n, "input", x), query = narrowed(n, "attention", x);
    uint32_t y = attend(n, query, x, rest, mask);
    for (int i = 0; i < PAIRS - 1; i++) {
        net_enter(n, "ffn.%d", i);
        y = pair(n, y);
        net_leave(n);
    }
    y = pair(n, y);
    net_enter(n, "output.bottleneck");
    y = no_norm(n, "LayerNorm", net_add(n, net_linear(n, "dense", y, HIDDEN), x));
    net_leave(n);
    return y;
}

void zoo_mobile_bert(Net *n, const ZooOptions *o) {
    PartTokens t = part_tokens(n, o);
    uint32_t   x = embeddings(n, &t);
    for (int i = 0; i < LAYERS; i++) {
        net_enter(n, "encoder.layer.%d", i);
        x = layer(n, x, t.mask);
        net_leave(n);
    }
    uint32_t pooled = net_reshape(n, net_slice(n, x, 1, 0, 1), 2, (int64_t[]){0, HIDDEN});
    net_output(n, x, "last_hidden_state");
    net_output(n, pooled, "pooler_output");
}
