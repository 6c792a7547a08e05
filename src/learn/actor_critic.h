// Trunk: what actor and critic have in common: items in, for each what it is among the others.
//
// Features [rows][in] go through a dense layer with relu (embed numbers; 0: none, they stay as they
// are), then an LSTM reads the items forwards and, with bidirectional, another one backwards. Out:
// [rows][width] = the embedding, then what the LSTMs say.
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

// Parameters: the dense layer's, the forward LSTM's, the backward LSTM's.
size_t trunk_params(Trunk t);
size_t trunk_cache_size(Trunk t, size_t rows, size_t seqs);
void   trunk_init(Trunk t, float *w, Rng *rng);

void trunk_forward(Trunk t, const float *w, const Ragged *r, Mat x, float *y, float *cache);

// y is what forward made, dy [rows][width] is used up. gw += gradients, unless NULL; dx is set,
// unless its `at` is NULL.
void trunk_backward(Trunk t, const float *w, float *gw, const Ragged *r, Mat x, const float *y,
                    float *dy, MatOut dx, float *cache);

// Actor: for every item of a sequence a vector of actions in [-1, 1], seen among the other items.

typedef struct Actor {
    Trunk    trunk;
    uint32_t actions;  // numbers per item
} Actor;

static inline Dense  actor_head(Actor a) { return (Dense){trunk_width(a.trunk), a.actions}; }
static inline size_t actor_params(Actor a) {
    return trunk_params(a.trunk) + dense_params(actor_head(a));
}

size_t actor_cache_size(Actor a, size_t rows, size_t seqs);
void   actor_init(Actor a, float *w, Rng *rng);  // its first actions are near 0

// out [rows][actions] of x [rows][in], by products of BLAS: for training. To act, see actor_plain.h
void actor_forward(Actor a, const float *w, const Ragged *r, const float *x, float *out,
                   float *cache);

// d_out [rows][actions]; gw += gradients. pull: how strongly what tanh bends is drawn to 0 besides.
// Uses up the cache.
void actor_backward(Actor a, const float *w, float *gw, const Ragged *r, const float *x,
                    const float *out, const float *d_out, float pull, float *cache);

double actor_macs(Actor a, uint32_t items);  // multiply-adds of a forward pass

// ActorPlain: an actor's forward pass for one sequence, in plain loops with a fixed order of sums.
//
// No BLAS and no libm: every machine gives the same bits. For where an actor decides.

size_t actor_infer_scratch(Actor a, uint32_t items);  // floats

// out [items][actions] of x [items][in], one after the other; w as for actor_forward.
void actor_infer(Actor a, const float *w, uint32_t items, const float *x, float *out,
                 float *scratch);

// Critic: what a sequence of items with their actions is worth, one number.
//
// A trunk reads features and actions together; the mean of what it says of the items, and how many
// there are, go through two dense layers.

typedef struct Critic {
    uint32_t features, actions;  // per item
    uint32_t embed, hidden;      // of the trunk; the layer behind it has `hidden` numbers too
    bool     bidirectional;
} Critic;

size_t critic_params(Critic c);
size_t critic_cache_size(Critic c, size_t rows, size_t seqs);
void   critic_init(Critic c, float *w, Rng *rng);

// q [n_seqs] by rank, of x [rows][features] and a [rows][actions].
void critic_forward(Critic c, const float *w, const Ragged *r, const float *x, const float *a,
                    float *q, float *cache);

// dq [n_seqs] by rank. gw += gradients, unless NULL; da [rows][actions] is set, unless NULL. Uses
// up the cache.
void critic_backward(Critic c, const float *w, float *gw, const Ragged *r, const float *dq,
                     float *da, float *cache);
