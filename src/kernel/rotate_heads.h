// RotateHeads: rotary position embedding of the heads of a tensor, and caches of keys and values
// that new positions are appended to.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/fused_attention.h"

// The row of the angles for position s of sequence b.
typedef enum RotaryRows {
    ROTARY_IDS,      // ids[b * length + s]
    ROTARY_FROM_ID,  // ids[0] + s
    ROTARY_EACH,     // b * length + s
    ROTARY_AFTER,    // the past of sequence b, then s: see CacheLengths
} RotaryRows;

// Positions that sequences have in a cache before the new ones.
typedef struct CacheLengths {
    const int32_t *lengths;  // [batch] positions less 1, new ones included; NULL: `past` of each
    uint32_t       past;
    bool           prompt;  // no sequence has a past
} CacheLengths;

// Pairs of the first `rotated` elements of a head are rotated, the others copied.
typedef struct RotateShape {
    uint32_t         batch, heads, length, size, rotated;
    bool             interleaved;  // pairs are neighbours, else halves
    AttentionStrides x, y;
    RotaryRows       rows;
    uint32_t         angles;  // rows of cosines and sines
} RotateShape;

// Arguments of isa->rotate_heads(&rotate, part).
typedef struct RotateHeads {
    RotateShape    shape;
    const float   *x, *cosines, *sines;  // cosines and sines [angles][rotated / 2]
    const int64_t *ids;                  // of ROTARY_IDS and ROTARY_FROM_ID, else NULL
    CacheLengths   cache;
    float         *y;
} RotateHeads;

// Rows [0, past) of a head come from the old cache, `fresh` new ones follow, the rest is 0.
typedef struct CacheAppend {
    uint32_t           batch, heads, size, old_rows, rows, fresh;
    AttentionStrides   x;
    const float       *old, *x_at;  // old [batch][heads][old_rows][size]; NULL: none
    float             *y;           // [batch][heads][rows][size]
    CacheLengths       cache;
    const RotateHeads *rotate;  // new rows are rotated; NULL: copied
} CacheAppend;

uint32_t rotate_heads_tasks(const RotateShape *s);
uint32_t cache_append_tasks(const CacheAppend *a);

static inline uint32_t cache_past(const CacheLengths *c, uint32_t fresh, uint32_t batch) {
    if (c->lengths == NULL || c->prompt) return c->prompt ? 0 : c->past;
    return (uint32_t)c->lengths[batch] + 1 - fresh;
}

static inline int64_t rotary_row(const RotateHeads *r, uint32_t batch, uint32_t s) {
    const RotateShape *shape = &r->shape;
    size_t             at = (size_t)batch * shape->length + s;
    if (r->ids != NULL) return shape->rows == ROTARY_FROM_ID ? r->ids[0] + s : r->ids[at];
    if (shape->rows == ROTARY_EACH) return (int64_t)at;
    return (int64_t)cache_past(&r->cache, shape->length, batch) + s;
}
