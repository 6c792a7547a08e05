// Transformer layers: multi-head attention and layer normalisation.
//
// Attention: queries from x [batch][queries][width], keys and values from y [batch][keys][width];
// out like x. With x = y it is self-attention. Parameters: four dense layers [width][width] for
// queries, keys, values and output. `width` is a multiple of `heads`.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "learn/dense.h"

typedef struct MultiHeadAttention {
    uint32_t width, heads;
} MultiHeadAttention;

typedef struct AttentionShape {
    uint32_t        batch, queries, keys;
    const uint32_t *len;   // [batch] number of valid keys; NULL: all
    const uint8_t  *hide;  // [queries][keys] 1: masked; NULL: no mask
    // Forward only, batch 1: key j is row row_of[j] of y [rows][width]; NULL: row j.
    const uint32_t *row_of;
    uint32_t        rows;
} AttentionShape;

static inline Dense  mha_dense(MultiHeadAttention a) { return (Dense){a.width, a.width}; }
static inline size_t mha_params(MultiHeadAttention a) { return 4 * dense_params(mha_dense(a)); }
size_t               mha_cache_size(MultiHeadAttention a, const AttentionShape *s);

void mha_init(MultiHeadAttention a, float *w, Rng *rng);

// A query with all keys masked gets the bias of the output layer.
void mha_forward(MultiHeadAttention a, const float *w, const AttentionShape *s, const float *x,
                 const float *y, float *out, float *cache);

// gw += gradients, unless NULL; dx and dy += gradients, unless NULL; they may be the same.
void mha_backward(MultiHeadAttention a, const float *w, float *gw, const AttentionShape *s,
                  const float *x, const float *y, const float *d_out, float *dx, float *dy,
                  float *cache);

// After mha_forward: attention weights of a query, [keys].
const float *mha_weights(MultiHeadAttention a, const AttentionShape *s, const float *cache,
                         uint32_t batch, uint32_t head, uint32_t query);

// Layer normalisation: each row of x [rows][n] to mean 0 and variance 1, then y = gain x' + bias.
// Parameters: gain [n], then bias [n].
typedef struct LayerNorm {
    uint32_t n;
} LayerNorm;

static inline size_t layer_norm_params(LayerNorm l) { return 2 * (size_t)l.n; }
static inline size_t layer_norm_cache_size(LayerNorm l, size_t rows) {
    return rows * ((size_t)l.n + 1);
}

void layer_norm_init(LayerNorm l, float *w);
void layer_norm_forward(LayerNorm l, const float *w, size_t rows, const float *x, float *y,
                        float *cache);

// gw += gradients, unless NULL; dx is set, unless NULL. dy and dx may be the same.
void layer_norm_backward(LayerNorm l, const float *w, float *gw, size_t rows, const float *dy,
                         float *dx, const float *cache);
