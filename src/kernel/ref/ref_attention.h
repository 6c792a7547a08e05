// Reference attention: softmax(scale q k' + bias) v, and rotary position embedding.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

// Element h of position s of head n of sequence b is at + b * batch + n * head + s * step + h.
typedef struct RefHeads {
    const Tensor *t;
    int64_t       at, batch, head, step;
} RefHeads;

// The scores are [batch, heads, queries, keys]; bias (or NULL) broadcasts to that and is added.
typedef struct RefAttention {
    int64_t       batch, heads, kv_heads, queries, keys, size, v_size;
    double        scale, softcap;  // softcap 0: none
    RefHeads      q, k, v, to;     // to: layout of the heads of y; to.t is not used
    const Tensor *bias;
    Tensor *y, *scores;  // scores after stage: 0 raw, 1 capped, 2 biased, 3 softmax; may be NULL
    int32_t stage;
} RefAttention;

MUST_USE Err ref_attention(const RefAttention *p, Arena *scratch);

// y = x with pairs of the first `rotated` elements of each head rotated by the position's angles.
// ids: int64 [batch, length], rows of the caches; without ids the caches are
// [batch, length, rotated / 2].
typedef struct RefRotary {
    int64_t       batch, heads, length, size, rotated;
    bool          interleaved;
    RefHeads      x, to;  // to: layout of the heads of y; to.t is not used
    Tensor       *y;
    const Tensor *cosines, *sines, *ids;
} RefRotary;

MUST_USE Err ref_rotary(const RefRotary *p);  // fails on an id outside the caches
