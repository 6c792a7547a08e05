// MaifsNet, internally: where each layer's parameters and each cached tensor are.
#pragma once

#include "learn/transformer.h"
#include "policy/cluster/maifs/maifs_net.h"

enum { MAIFS_CHUNK = 64 };  // offers priced at once, so that they stay in the L1 cache

// Contributions of servers and jobs to each output, computed once: columns of `hidden` floats. The
// servers' MAIFS_VALUE column is not read.
enum { MAIFS_PRICE, MAIFS_PAIR, MAIFS_VALUE, MAIFS_COLUMNS };

typedef struct MaifsParts {  // index of each layer's first parameter or gradient
    size_t server, job, queue;
    size_t attend[MAIFS_NET_ROUNDS], norm[MAIFS_NET_ROUNDS];
    size_t by_server, by_job;  // [width][MAIFS_COLUMNS * hidden]
    size_t by_context;         // [width][hidden], without bias
    size_t by_offer;           // [MAIFS_OFFER][hidden], without bias
    size_t value, straight;    // output layers; straight [MAIFS_OFFER]: features to prices
    size_t price, left, right;
    size_t reserved;  // an output layer that is not computed; keeps the layout of weights files
    size_t n;
} MaifsParts;

typedef struct MaifsCache {
    uint32_t n_servers, n_jobs;
    float *z[MAIFS_NET_ROUNDS + 1];  // [n_servers + 1][width] before the first round and after each
    float *attend[MAIFS_NET_ROUNDS], *norm[MAIFS_NET_ROUNDS];
    float *sum;      // [n_servers][width] before the norm of a round
    float *x;        // [n_jobs][width]
    float *context;  // [width]
    float *by_server, *by_job, *by_context;
    float *value;        // [n_jobs][hidden]
    float *u;            // [n_jobs]
    float *chunk;        // [MAIFS_CHUNK][hidden]
    uint32_t *kind;      // [n_servers] servers of a kind have equal features; then the queue's row
    uint32_t *table;     // [maifs_kind_slots(n_servers)] kinds + 1 by the hash of their features
    float    *features;  // [n_servers][MAIFS_SERVER] of each kind
    float    *kinds;     // [n_servers + 1][width] of each kind, then the queue: encoded, attended
    float    *of_kinds;  // [n_servers][MAIFS_COLUMNS * hidden] of each kind: by_server
    float    *d_by_server, *d_by_job, *d_chunk, *d_z, *d_sum, *d_x, *d_context;
    size_t    n;
} MaifsCache;

// In maifs_kinds.c. A power of two.
size_t maifs_kind_slots(uint32_t n_servers);
// Finds the kinds, copies their features, and returns their number.
uint32_t maifs_find_kinds(const MaifsCache *k, const float *servers);
// to [n_servers][n] gets each server's row of kinds [kinds][n].
void maifs_spread_kinds(const MaifsCache *k, size_t n, const float *kinds, float *to);

MaifsParts maifs_net_parts(const MaifsNet *net);
MaifsCache maifs_net_cached(const MaifsNet *net, float *cache);  // after maifs_net_observe

static inline MultiHeadAttention maifs_attend(const MaifsNet *net) {
    return (MultiHeadAttention){net->width, net->heads};
}
static inline LayerNorm maifs_norm(const MaifsNet *net) { return (LayerNorm){net->width}; }
static inline Dense     maifs_by(const MaifsNet *net) {
        return (Dense){net->width, MAIFS_COLUMNS * net->hidden};
}
static inline Dense maifs_last(const MaifsNet *net) { return (Dense){net->hidden, 1}; }
static inline Dense maifs_factor(const MaifsNet *net) { return (Dense){net->hidden, net->rank}; }
static inline AttentionShape maifs_attend_size(uint32_t n_servers) {
    return (AttentionShape){.batch = 1, .queries = n_servers, .keys = n_servers + 1};
}
static inline size_t maifs_z(const MaifsNet *net) {  // index of the final z
    return net->attention ? net->rounds : 1;
}
