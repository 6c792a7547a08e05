// DLRM (Naumov et al. 2019) with MLPerf's layers, and the basic LSTM keyword spotter of "Hello
// Edge" (Zhang et al. 2017).
#include <math.h>

#include "model/zoo/zoo.h"
#include "model/zoo/zoo_part.h"

enum { TABLES = 26, WIDTH = 128, VECTORS = TABLES + 1, PAIRS = VECTORS * TABLES / 2 };

// Rows per embedding table of the Criteo terabyte set, limited to 40,000 where MLPerf limits them
// to 40,000,000: those tables take 96 GB.
static const int64_t table_rows[TABLES] = {
    40000, 39043, 17289, 7420, 20263, 3,  7120,  1543,  63,    40000, 40000, 40000, 10,
    2208,  11938, 155,   4,    976,   14, 40000, 40000, 40000, 40000, 12972, 108,   36};

static uint32_t mlp(NetBuilder *n, const char *name, uint32_t x, const int64_t *widths, int count) {
    static const char *const places[] = {"0", "2", "4", "6", "8"};
    net_push_scope(n, "%s", name);
    for (int i = 0; i < count; i++) {
        x = net_linear(n, places[i], x, widths[i]);
        x = net_activation(n, widths[i] == 1 ? NET_SIGMOID : NET_RELU, x);
    }
    net_pop_scope(n);
    return x;
}

// Looks up one row per table. As in the original, an index past the end of a table wraps around.
static void look_up(NetBuilder *n, uint32_t sparse, uint32_t *vectors) {
    uint32_t in[2] = {sparse, net_const_ints(n, "rows", table_rows, TABLES)};
    NetNode  mod = {OP_Mod, "wrap", in, 2, 0, NULL, false};
    uint32_t wrapped = net_node(n, mod, n->g->values[sparse].type, (NetStat){0, 1});
    for (int64_t i = 0; i < TABLES; i++) {
        net_push_scope(n, "emb_l.%d", (int)i);
        uint32_t at = net_gather(n, "column", wrapped, net_const_ints(n, "at", &i, 1), 1);
        at = net_reshape(n, at, 1, (int64_t[]){-1});
        vectors[i] = net_embedding(n, "row", at, table_rows[i], WIDTH, pow(WIDTH, -0.25));
        net_pop_scope(n);
    }
}

// The dot products of all pairs of vectors: T x T' below its diagonal.
static uint32_t interact(NetBuilder *n, const uint32_t *vectors) {
    int64_t below[PAIRS], count = 0;
    for (int64_t i = 0; i < VECTORS; i++)
        for (int64_t k = 0; k < i; k++) below[count++] = i * VECTORS + k;
    net_push_scope(n, "interact");
    uint32_t t = net_concat(n, "vectors", vectors, VECTORS, 1);
    t = net_reshape(n, t, 3, (int64_t[]){0, VECTORS, WIDTH});
    uint32_t z = net_matmul(n, "products", t, net_transpose(n, t, (int64_t[]){0, 2, 1}));
    z = net_gather(n, "pairs", net_flatten(n, z), net_const_ints(n, "below", below, count), 1);
    uint32_t both[2] = {vectors[0], z};
    z = net_concat(n, "concat", both, 2, 1);
    net_pop_scope(n);
    return z;
}

void zoo_dlrm(NetBuilder *n, const ZooOptions *o) {
    uint32_t dense = net_input(n, "dense", DT_F32, 2, (int64_t[]){o->batch, 13});
    uint32_t sparse = net_input(n, "sparse", DT_I64, 2, (int64_t[]){o->batch, TABLES});
    uint32_t vectors[VECTORS];
    vectors[0] = mlp(n, "bot_l", dense, (int64_t[]){512, 256, WIDTH}, 3);
    look_up(n, sparse, vectors + 1);
    uint32_t x = interact(n, vectors);
    net_output(n, mlp(n, "top_l", x, (int64_t[]){1024, 1024, 512, 256, 1}, 5), "click");
}

void zoo_lstm_kws(NetBuilder *n, const ZooOptions *o) {
    int64_t  dims[3] = {o->batch, o->sequence, 10};  // frames every 20 ms, 10 coefficients each
    uint32_t x = net_input(n, "mfcc", DT_F32, 3, dims);
    x = net_lstm(n, "lstm", net_transpose(n, x, (int64_t[]){1, 0, 2}), 118);
    x = net_reshape(n, x, 2, (int64_t[]){-1, 118});
    net_output(n, net_linear(n, "fc", x, 12), "logits");
}
