// Trunk: what actor and critic have in common: items in, for each what it is among the others.
//
// Features [rows][in] go through a dense layer with relu (embed numbers; 0: none, they stay as they
// are), then an LSTM reads the items forwards and, with both_ways, another one backwards. Out:
// [rows][width] = the embedding, then what the LSTMs say.
#pragma once

#include <stdbool.h>

#include "base/rng.h"
#include "learn/dense.h"
#include "learn/lstm.h"
#include "learn/ragged.h"

typedef struct Trunk {
    uint32_t in, embed, hidden;
    bool     both_ways;
} Trunk;

static inline uint32_t trunk_base(Trunk t) { return t.embed > 0 ? t.embed : t.in; }
static inline uint32_t trunk_width(Trunk t) {
    return trunk_base(t) + (t.both_ways ? 2 : 1) * t.hidden;
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
