// Actor: for every item of a sequence a vector of actions in [-1, 1], seen among the other items.
#pragma once

#include "learn/trunk.h"

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
