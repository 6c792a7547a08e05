// A small decoder as onnxruntime-genai exports them: rotary embedding and grouped heads with caches
// of keys and values (GroupQueryAttention), RMS norms that add the residual stream, gated
// feed-forward layers; optionally products with weights of 4 bits (MatMulNBits).
//
// The caches have `sequence` rows, of which the attention mask says how many count; with open
// lengths they have as many as the positions before the new ones, and grow by the new ones.
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "model/zoo/zoo.h"
#include "model/zoo/zoo_part.h"

enum {
    HIDDEN = 256,
    HEADS = 8,
    KV_HEADS = 2,
    SIZE = HIDDEN / HEADS,
    INNER = 704,
    LAYERS = 4,
    WORDS = 4096,
    POSITIONS = 1024,
    BLOCK = 32
};

typedef struct Decoder {
    NetBuilder *n;
    bool        open, narrow;
    int64_t     batch, rows;     // rows of the caches; DIM_UNKNOWN: open
    uint32_t    lengths, total;  // inputs of GroupQueryAttention
    uint32_t    cosines, sines;
} Decoder;

static Tensor hidden_type(const Decoder *d, int64_t width) {
    return tensor_of(DT_F32, 3, (int64_t[]){d->batch, d->open ? DIM_UNKNOWN : 1, width}, NULL);
}

static void name_dims(const Decoder *d, uint32_t value, const char *a, const char *b, const char *c,
                      const char *e) {
    const char *given[4] = {a, b, c, e};
    Value      *v = &d->n->g->values[value];
    if (!d->open) return;
    v->symbols = arena_new(d->n->g->arena, const char *, (size_t)v->type.rank);
    for (int32_t i = 0; i < v->type.rank; i++) v->symbols[i] = given[i];
}

static uint32_t unary(const Decoder *d, OpId op, const char *name, uint32_t x, Attr attr,
                      Tensor t) {
    NetNode node = {op, name, &x, 1, 1, &attr, false};
    return net_node(d->n, node, t, (NetStat){1, 1});
}

// Keys of each sequence less 1, at least 0.
static uint32_t lengths_of(const Decoder *d, uint32_t mask) {
    Tensor   t = tensor_of(DT_I64, 2, (int64_t[]){d->batch, 1}, NULL);
    int64_t  one = 1, zero = 0;
    uint32_t in[2] = {mask, net_const_ints(d->n, "mask.axis", &one, 1)};
    NetNode  sum = {OP_ReduceSum, "mask.sum", in, 2, 0, NULL, false};
    uint32_t pair[2] = {net_node(d->n, sum, t, (NetStat){1, 1}),
                        net_const_ints(d->n, "mask.one", &one, 1)};
    NetNode  less = {OP_Sub, "mask.last", pair, 2, 0, NULL, false};
    pair[0] = net_node(d->n, less, t, (NetStat){1, 1});
    pair[1] = net_const_ints(d->n, "mask.zero", &zero, 1);
    NetNode most = {OP_Max, "mask.least", pair, 2, 0, NULL, false};
    pair[0] = net_node(d->n, most, t, (NetStat){1, 1});
    t.dtype = DT_I32;
    return unary(d, OP_Cast, "seqlens_k", pair[0], net_attr_int("to", DT_I32), t);
}

static uint32_t total_of(const Decoder *d, uint32_t mask) {
    int32_t rows = (int32_t)d->rows;
    int64_t one = 1;
    Tensor  t = tensor_of(DT_I64, 1, (int64_t[]){1}, NULL);
    if (!d->open)
        return net_const(d->n, "total_sequence_length", tensor_of(DT_I32, 1, &one, &rows));
    uint32_t shape = unary(d, OP_Shape, "mask.length", mask, net_attr_int("start", 1), t);
    t.dtype = DT_I32;
    return unary(d, OP_Cast, "total_sequence_length", shape, net_attr_int("to", DT_I32), t);
}

// Angle of pair i at position p: p / 10000^(2 i / size).
static uint32_t angles(const Decoder *d, const char *name, double (*f)(double)) {
    static const int64_t dims[2] = {POSITIONS, SIZE / 2};
    float               *x = arena_new(d->n->g->arena, float, (size_t)POSITIONS *SIZE / 2);
    for (int p = 0; p < POSITIONS; p++)
        for (int i = 0; i < SIZE / 2; i++)
            x[p * SIZE / 2 + i] = (float)f(p * pow(10000, -2.0 * i / SIZE));
    return net_const(d->n, name, tensor_of(DT_F32, 2, dims, x));
}

// Random integers from 1 to 15 (the zero point is 8) with scales that keep the variance of the
// result at that of x.
static uint32_t narrow_linear(const Decoder *d, const char *name, uint32_t x, int64_t out) {
    NetBuilder *n = d->n;
    int64_t     in = net_dim(n, x, -1), blocks = in / BLOCK;
    size_t      bytes = (size_t)(out * in / 2);
    uint8_t    *q = arena_new(n->g->arena, uint8_t, bytes);
    const char *full = arena_printf(n->g->arena, "%s%s", n->scope, name);
    Rng         r = rng_fork(n->seed, hash_fnv(HASH_FNV_START, full, strlen(full)));
    for (size_t i = 0; i < bytes; i++)
        q[i] = (uint8_t)((1 + rng_below(&r, 15)) | (1 + rng_below(&r, 15)) << 4);
    double scale = 1 / (4.32 * sqrt((double)in));
    net_push_scope(n, "%s", name);
    uint32_t operands[3] = {
        x, net_const(n, "weight", tensor_of(DT_U8, 3, (int64_t[]){out, blocks, BLOCK / 2}, q)),
        net_weight(n, "scales", 2, (int64_t[]){out, blocks}, scale, 0.25 * scale)};
    Attr     attrs[] = {net_attr_int("K", in), net_attr_int("N", out), net_attr_int("bits", 4),
                        net_attr_int("block_size", BLOCK)};
    NetNode  node = {OP_MsMatMulNBits, "matmul", operands, 3, 4, attrs, false};
    uint32_t y = net_node(n, node, hidden_type(d, out), (NetStat){0, 1});
    net_pop_scope(n);
    return y;
}

static uint32_t linear(const Decoder *d, const char *name, uint32_t x, int64_t out) {
    NetBuilder *n = d->n;
    if (d->narrow) return narrow_linear(d, name, x, out);
    int64_t dims[2] = {net_dim(n, x, -1), out};
    net_push_scope(n, "%s", name);
    uint32_t weight = net_weight(n, "weight", 2, dims, 0, sqrt(3.0 / (double)dims[0]));
    NetNode  node = {OP_MatMul, "matmul", (uint32_t[]){x, weight}, 2, 0, NULL, false};
    uint32_t y = net_node(n, node, hidden_type(d, out), (NetStat){0, 1});
    net_pop_scope(n);
    return y;
}

static uint32_t norm_weight(const Decoder *d, const char *name) {
    int64_t width = HIDDEN;
    net_push_scope(d->n, "%s", name);
    uint32_t w = net_weight(d->n, "weight", 1, &width, 1, 0.1);
    net_pop_scope(d->n);
    return w;
}

// *stream += add; returns its RMS norm.
static uint32_t add_norm(const Decoder *d, const char *name, uint32_t add, uint32_t *stream) {
    Attr      attr = net_attr_float("epsilon", 1e-6F);
    uint32_t  in[3] = {*stream, add, norm_weight(d, name)}, out[4];
    NetNode   node = {OP_MsSkipSimplifiedLayerNorm, name, in, 3, 1, &attr, false};
    NetOutput o[4] = {{name, hidden_type(d, HIDDEN), {0, 1}}};
    o[3] = (NetOutput){"residual", hidden_type(d, HIDDEN), {0, 1}};
    net_node_outputs(d->n, node, o, 4, out);
    *stream = out[3];
    return out[0];
}

static uint32_t first_norm(const Decoder *d, uint32_t x) {
    Attr     attrs[] = {net_attr_int("axis", -1), net_attr_float("epsilon", 1e-6F)};
    uint32_t in[2] = {x, norm_weight(d, "input_norm")};
    NetNode  node = {OP_SimplifiedLayerNormalization, "input_norm", in, 2, 2, attrs, false};
    return net_node(d->n, node, hidden_type(d, HIDDEN), (NetStat){0, 1});
}

static uint32_t cache_input(const Decoder *d, int layer, const char *what) {
    int64_t  dims[4] = {d->batch, KV_HEADS, d->rows, SIZE};
    char    *name = arena_printf(d->n->g->arena, "past_key_values.%d.%s", layer, what);
    uint32_t v = net_input(d->n, name, DT_F32, 4, dims);
    name_dims(d, v, NULL, NULL, "past_length", NULL);
    return v;
}

static uint32_t attention(const Decoder *d, int layer, uint32_t x) {
    NetBuilder *n = d->n;
    Tensor      cache = tensor_of(DT_F32, 4, (int64_t[]){d->batch, KV_HEADS, d->rows, SIZE}, NULL);
    uint32_t    past[2] = {cache_input(d, layer, "key"), cache_input(d, layer, "value")}, out[3];
    uint32_t    in[9] = {linear(d, "q_proj", x, HIDDEN),
                         linear(d, "k_proj", x, KV_HEADS * SIZE),
                         linear(d, "v_proj", x, KV_HEADS * SIZE),
                         past[0],
                         past[1],
                         d->lengths,
                         d->total,
                         d->cosines,
                         d->sines};
    Attr        attrs[] = {net_attr_int("num_heads", HEADS), net_attr_int("kv_num_heads", KV_HEADS),
                           net_attr_int("do_rotary", 1)};
    NetNode     node = {OP_MsGroupQueryAttention, "attention", in, 9, 3, attrs, false};
    NetOutput   o[3] = {{"attention", hidden_type(d, HIDDEN), {0, 1}},
                        {"keys", cache, {0, 1}},
                        {"values", cache, {0, 1}}};
    net_node_outputs(n, node, o, 3, out);
    for (int i = 0; i < 2; i++) {
        net_output(n, out[1 + i],
                   arena_printf(n->g->arena, "present.%d.%s", layer, i == 0 ? "key" : "value"));
        name_dims(d, out[1 + i], NULL, NULL, "total_length", NULL);
    }
    return linear(d, "o_proj", out[0], HIDDEN);
}

static uint32_t feed_forward(const Decoder *d, uint32_t x) {
    uint32_t gate = linear(d, "gate_proj", x, INNER), up = linear(d, "up_proj", x, INNER);
    return linear(d, "down_proj", net_mul(d->n, net_activation(d->n, NET_SILU, gate), up), HIDDEN);
}

static void layers(const Decoder *d, uint32_t x) {
    NetBuilder *n = d->n;
    uint32_t    stream = x;
    x = first_norm(d, x);
    for (int i = 0; i < LAYERS; i++) {
        net_push_scope(n, "layers.%d", i);
        x = add_norm(d, "post_attention_norm", attention(d, i, x), &stream);
        x = add_norm(d, "output_norm", feed_forward(d, x), &stream);
        net_pop_scope(n);
    }
    x = linear(d, "lm_head", x, WORDS);
    net_output(n, x, "logits");
    name_dims(d, x, NULL, "length", NULL, NULL);
}

static void decoder(NetBuilder *n, const ZooOptions *o, bool narrow) {
    Decoder d = {.n = n, .open = o->open, .narrow = narrow, .batch = o->batch, .rows = o->sequence};
    int64_t fresh = o->open ? DIM_UNKNOWN : 1;
    if (o->open) d.rows = DIM_UNKNOWN;
    uint32_t ids = net_input(n, "input_ids", DT_I64, 2, (int64_t[]){o->batch, fresh});
    uint32_t mask = net_input(n, "attention_mask", DT_I64, 2, (int64_t[]){o->batch, d.rows});
    name_dims(&d, ids, NULL, "length", NULL, NULL);
    name_dims(&d, mask, NULL, "total_length", NULL, NULL);
    d.lengths = lengths_of(&d, mask);
    d.total = total_of(&d, mask);
    d.cosines = angles(&d, "cos_cache", cos);
    d.sines = angles(&d, "sin_cache", sin);
    layers(&d, net_embedding(n, "embed_tokens", ids, WORDS, HIDDEN, 1));
}

void zoo_decoder(NetBuilder *n, const ZooOptions *o) { decoder(n, o, false); }
void zoo_decoder_int4(NetBuilder *n, const ZooOptions *o) { decoder(n, o, true); }
