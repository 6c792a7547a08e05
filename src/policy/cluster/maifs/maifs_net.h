// MaifsNet: the agents' network: servers are encoded, attend to each other, and score offers to
// jobs.
//
// Servers o_i, jobs q_k and the queue are encoded; servers attend to each other and to the queue:
//     e_i = relu(W1 o_i), x_k = relu(W2 q_k), t = relu(Wt queue)
//     z = norm(e + attend(e, [e; t])), once per round; c = mean z_i
// Without attention z = norm(e) and c = 0, so an agent sees only its own server and the job. Sums
// have one order on every machine, and nothing allocates. After initialisation every output is 0
// (for pairs, their product).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum {  // features
    MAIFS_SERVER = 16,
    MAIFS_JOB = 24,
    MAIFS_OFFER = 16,
    MAIFS_QUEUE = 4,
    MAIFS_NET_ROUNDS = 4,  // rounds of attention, at most
};

typedef struct MaifsNet {
    uint32_t width, heads;  // of encoded servers and jobs; attention heads, a divisor of it
    uint32_t rounds;        // of attention, at least 1
    uint32_t hidden;        // units of every output; a multiple of 8
    uint32_t rank;          // of pair payoffs
    bool     attention;
} MaifsNet;

static inline MaifsNet maifs_net_default(void) {
    return (MaifsNet){
        .width = 32, .heads = 4, .rounds = 1, .hidden = 32, .rank = 4, .attention = true};
}

typedef struct MaifsInput {
    const float *servers;  // [n_servers][MAIFS_SERVER]
    const float *jobs;     // [n_jobs][MAIFS_JOB]
    const float *queue;    // [MAIFS_QUEUE]
    uint32_t     n_servers, n_jobs;
    bool         merge;  // servers with equal features are computed once; not for gradients
} MaifsInput;

typedef struct MaifsOfferAt {  // indices into the input
    uint32_t server, job;
} MaifsOfferAt;

size_t maifs_net_params(const MaifsNet *net);  // equal with and without attention
void   maifs_net_init(const MaifsNet *net, float *w, Rng *rng);

typedef struct MaifsOutputLayers {  // index of the first parameter, one after the other
    size_t value;                   // output layer of values
    size_t straight, end;           // linear part of offer scores
} MaifsOutputLayers;

MaifsOutputLayers maifs_net_output_layers(const MaifsNet *net);

// Floats of cache: filled by maifs_net_observe, read by the functions after it.
size_t maifs_net_cache(const MaifsNet *net, uint32_t n_servers, uint32_t n_jobs);

// u [n_jobs] = tanh(w . relu(Wx x_k + Wc c)); u may be NULL.
void maifs_net_observe(const MaifsNet *net, const float *w, const MaifsInput *in, float *cache,
                       float *u);

// f [n] = w . relu(Wz z_i + Wx x_k + Wo offer) + v . offer; features [n][MAIFS_OFFER].
void maifs_net_price(const MaifsNet *net, const float *w, float *cache, uint32_t n,
                     const MaifsOfferAt *at, const float *features, float *f);

// left, right [n][rank], linear in relu(Wz z_i + Wx x_k).
void maifs_net_pair(const MaifsNet *net, const float *w, float *cache, uint32_t n,
                    const MaifsOfferAt *at, float *left, float *right);

// Backward: begin, then one call per forward call, then maifs_net_observe_back. gw += gradients.
void maifs_net_back_begin(const MaifsNet *net, float *cache);
void maifs_net_price_back(const MaifsNet *net, const float *w, float *gw, float *cache, uint32_t n,
                          const MaifsOfferAt *at, const float *features, const float *df);
void maifs_net_pair_back(const MaifsNet *net, const float *w, float *gw, float *cache, uint32_t n,
                         const MaifsOfferAt *at, const float *d_left, const float *d_right);
// du may be NULL.
void maifs_net_observe_back(const MaifsNet *net, const float *w, float *gw, const MaifsInput *in,
                            float *cache, const float *du);
