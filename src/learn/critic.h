// Critic: what a sequence of items with their actions is worth, one number.
//
// A trunk reads features and actions together; the mean of what it says of the items, and how many
// there are, go through two dense layers.
#pragma once

#include "learn/trunk.h"

typedef struct Critic {
    uint32_t features, actions;  // per item
    uint32_t embed, hidden;      // of the trunk; the layer behind it has `hidden` numbers too
    bool     both_ways;
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
