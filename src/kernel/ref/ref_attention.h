// Attention: queries that take shares of values by how well keys match. The slow, obvious truth.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

// Element h of place s of head n of sequence b: at + b * batch + n * head + s * step + h.
typedef struct RefHeads {
    const Tensor *t;
    int64_t       at, batch, head, step;
} RefHeads;

// The scores are [batch, heads, queries, keys]; bias (or NULL) broadcasts to that and is added.
typedef struct RefAttention {
    int64_t       batch, heads, kv_heads, queries, keys, size, v_size;
    double        scale, softcap;  // softcap 0: none
    RefHeads      q, k, v, to;     // to: where y has its heads; its t is not used
    const Tensor *bias;
    Tensor       *y, *scores;  // scores at a stage: 0 raw, 1 capped, 2 biased, 3 shares; or NULL
    int32_t       stage;
} RefAttention;

MUST_USE Err ref_attention(const RefAttention *p, Arena *scratch);

// y = x with pairs of the first rotated elements of each head transposed by the angles of a place.
// ids int64 [batch, length] choose rows of the caches, else [batch, length, rotated / 2] are those.
typedef struct RefRotary {
    int64_t       batch, heads, length, size, rotated;
    bool          interleaved;
    RefHeads      x;  // y has its heads in the same places
    Tensor       *y;
    const Tensor *cosines, *sines, *ids;
} RefRotary;

MUST_USE Err ref_rotary(const RefRotary *p);  // fails on an id outside the caches
