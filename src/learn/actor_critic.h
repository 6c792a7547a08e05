// Actor and critic networks over sequences of items, with a trunk of the same form.
//
// Trunk: features [rows][in] pass a dense layer with relu of size embed (0: none), then an LSTM
// over the items of a sequence and, if bidirectional, a second one in reverse. Output
// [rows][width]: the embedding, then the outputs of the LSTMs.
#pragma once

#include <stdbool.h>

#include "base/rng.h"
#include "learn/dense.h"
#include "learn/lstm.h"
#include "learn/ragged.h"

typedef struct Trunk {
    uint32_t in, embed, hidden;
    bool     bidirectional;
} Trunk;

static inline uint32_t trunk_base(Trunk t) { return t.embed > 0 ? t.embed : t.in; }
static inline uint32_t trunk_width(Trunk t) {
    return trunk_base(t) + (t.bidirectional ? 2 : 1) * t.hidden;
}
static inline Dense trunk_dense(Trunk t) { return (Dense){t.in, t.embed}; }
static inline Lstm  trunk_lstm(Trunk t, bool backwards) {
     return (Lstm){trunk_base(t), t.hidden, backwards};
}

// Parameters in order: dense layer, forward LSTM, backward LSTM.
size_t trunk_params(Trunk t);
size_t trunk_cache_size(Trunk t, size_t rows, size_t seqs);
void   trunk_init(Trunk t, float *w, Rng *rng);

void trunk_forward(Trunk t, const float *w, const Ragged *r, Mat x, float *y, float *cache);

// y is the output of forward; dy [rows][width] is overwritten. gw += gradients, unless NULL; dx is
// set, unless its `at` is NULL.
void trunk_backward(Trunk t, const float *w, float *gw, const Ragged *r, Mat x, const float *y,
                    float *dy, MatOut dx, float *cache);

// Actor: a vector of actions in [-1, 1] for every item, in the context of its sequence.
typedef struct Actor {
    Trunk    trunk;
    uint32_t actions;  // values per item
} Actor;

static inline Dense  actor_head(Actor a) { return (Dense){trunk_width(a.trunk), a.actions}; }
static inline size_t actor_params(Actor a) {
    return trunk_params(a.trunk) + dense_params(actor_head(a));
}

size_t actor_cache_size(Actor a, size_t rows, size_t seqs);
void   actor_init(Actor a, float *w, Rng *rng);  // initial actions are near 0

// out [rows][actions] of x [rows][in], for training; to act, use actor_infer.
void actor_forward(Actor a, const float *w, const Ragged *r, const float *x, float *out,
                   float *cache);

// d_out [rows][actions]; gw += gradients. pre_tanh_l2: strength of an L2 penalty on the values
// before tanh. Overwrites the cache.
void actor_backward(Actor a, const float *w, float *gw, const Ragged *r, const float *x,
                    const float *out, const float *d_out, float pre_tanh_l2, float *cache);

double actor_macs(Actor a, uint32_t items);  // multiply-accumulates of a forward pass

// Inference for one sequence without BLAS and libm: bitwise reproducible on every machine.
// out [items][actions] of x [items][in].
size_t actor_infer_scratch(Actor a, uint32_t items);  // floats
void   actor_infer(Actor a, const float *w, uint32_t items, const float *x, float *out,
                   float *scratch);

// Critic: the value of a sequence of items with their actions. A trunk reads features and actions;
// the mean of its outputs over the items, and their number, pass two dense layers.
typedef struct Critic {
    uint32_t features, actions;  // per item
    uint32_t embed, hidden;      // of the trunk; the layer after it has size `hidden` too
    bool     bidirectional;
} Critic;

size_t critic_params(Critic c);
size_t critic_cache_size(Critic c, size_t rows, size_t seqs);
void   critic_init(Critic c, float *w, Rng *rng);

// q [n_seqs] by rank, from x [rows][features] and a [rows][actions].
void critic_forward(Critic c, const float *w, const Ragged *r, const float *x, const float *a,
                    float *q, float *cache);

// dq [n_seqs] by rank. gw += gradients, unless NULL; da [rows][actions] is set, unless NULL.
// Overwrites the cache.
void critic_backward(Critic c, const float *w, float *gw, const Ragged *r, const float *dq,
                     float *da, float *cache);
