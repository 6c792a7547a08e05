// BERT (Devlin et al. 2018), uncased. The base network ends with hidden states and the pooler; the
// large one with MLPerf's question-answering head, start and end logits per token.
#include "model/zoo.h"
#include "model/zoo_part.h"

static uint32_t norm(Net *n, const char *name, uint32_t x) {
    return net_layer_norm(n, name, x, 1e-12f);
}

static uint32_t embeddings(Net *n, const PartTokens *t, int64_t hidden) {
    net_enter(n, "embeddings");
    uint32_t x = net_embedding(n, "word_embeddings", t->ids, PART_WORDS, hidden, 1);
    uint32_t type = net_embedding(n, "token_type_embeddings", t->types, 2, hidden, 1);
    x = net_add(n, net_add(n, x, type), part_positions(n, t->sequence, hidden));
    x = norm(n, "LayerNorm", x);
    net_leave(n);
    return x;
}

static uint32_t layer(Net *n, uint32_t x, uint32_t mask, int64_t hidden) {
    net_enter(n, "attention");
    uint32_t y = net_add(n, part_attention(n, x, x, mask, hidden / 64), x);
    y = norm(n, "output.LayerNorm", y);
    net_leave(n);
    uint32_t z = net_act(n, NET_GELU, net_linear(n, "intermediate.dense", y, 4 * hidden));
    z = net_add(n, net_linear(n, "output.dense", z, hidden), y);
    return norm(n, "output.LayerNorm", z);
}

static uint32_t bert(Net *n, const ZooOptions *o, int64_t hidden, int layers) {
    PartTokens t = part_tokens(n, o);
    uint32_t   x = embeddings(n, &t, hidden);
    for (int i = 0; i < layers; i++) {
        net_enter(n, "encoder.layer.%d", i);
        x = layer(n, x, t.mask, hidden);
        net_leave(n);
    }
    return x;
}

void zoo_bert_base(Net *n, const ZooOptions *o) {
    uint32_t x = bert(n, o, 768, 12);
    net_enter(n, "pooler");
    uint32_t first = net_reshape(n, net_slice(n, x, 1, 0, 1), 2, (int64_t[]){0, 768});
    uint32_t pooled = net_act(n, NET_TANH, net_linear(n, "dense", first, 768));
    net_leave(n);
    net_output(n, x, "last_hidden_state");
    net_output(n, pooled, "pooler_output");
}

void zoo_bert_large(Net *n, const ZooOptions *o) {
    uint32_t x = net_linear(n, "qa_outputs", bert(n, o, 1024, 24), 2);
    for (int64_t i = 0; i < 2; i++) {
        net_enter(n, "qa_outputs");
        uint32_t y = net_reshape(n, net_slice(n, x, 2, i, i + 1), 2, (int64_t[]){0, 0});
        net_leave(n);
        net_output(n, y, i == 0 ? "start_logits" : "end_logits");
    }
}
