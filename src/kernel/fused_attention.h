// FusedAttention: softmax(scale q k' + mask) v per head, in blocks of queries, with the scores in
// L2.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/version.h"

enum { ATTENTION_ROWS = 4 };  // queries that read keys in place together

// Row s of head h of sequence b starts at float b * batch + h * head + s * step.
typedef struct AttentionStrides {
    size_t batch, head, step;  // 0: shared
} AttentionStrides;

typedef struct FusedAttentionShape {
    uint32_t         batch, heads, kv_heads;  // heads is a multiple of kv_heads
    uint32_t         queries, keys, size, v_size;
    AttentionStrides q, k, v, y;
    bool             k_transposed;  // k is [size][keys]; k.step goes along size
    AttentionStrides mask;          // mask.step goes along queries
    bool             chosen;        // a score whose mask is 0 becomes `otherwise`
    float            otherwise;
    float            scale, softcap;  // softcap 0: none
    bool             causal;          // query i attends to keys up to past + i
    uint32_t         past;
    uint32_t         window;   // the last keys of those that a query attends to; 0: all
    bool             lengths;  // keys differ by sequence: FusedAttention.lengths
    bool             last;     // with lengths: the queries are at the last keys, else at the first
} FusedAttentionShape;

// Version.pack: how a head's keys and values are read.
typedef enum AttentionPack {
    ATTENTION_PANELS,   // from packed panels, by blocks of queries of one head
    ATTENTION_IN_PLACE  // row by row, for few queries: all heads that share them at once
} AttentionPack;

// Arguments of isa->attention(&attention, part). A query with all scores -INFINITY gets 0.
typedef struct FusedAttention {
    FusedAttentionShape shape;
    Version             version;  // one of fused_attention_versions
    const float        *q, *k, *v;
    const float        *mask;     // added to the scores, unless `chosen`; NULL: none
    const int32_t      *lengths;  // [batch] keys of each sequence, less 1
    float              *y;
} FusedAttention;

// Keys that one query attends to: [first, end).
typedef struct KeyRange {
    uint32_t first, end;
} KeyRange;

static inline uint32_t attention_keys(const FusedAttention *a, uint32_t batch) {
    return a->lengths != NULL ? (uint32_t)a->lengths[batch] + 1 : a->shape.keys;
}

static inline KeyRange attention_range(const FusedAttention *a, uint32_t batch, uint32_t query) {
    const FusedAttentionShape *s = &a->shape;
    uint32_t                   keys = attention_keys(a, batch), past = s->past;
    if (a->lengths != NULL) past = s->last ? keys - s->queries : 0;
    KeyRange r = {0, keys};
    if (s->causal && past + query + 1 < keys) r.end = past + query + 1;
    if (s->window > 0 && r.end > s->window) r.first = r.end - s->window;
    return r;
}

// Writes at least 1 and at most max versions, the one expected to be fastest first; returns how
// many.
uint32_t fused_attention_versions(const FusedAttentionShape *s, const Isa *isa,
                                  const CacheSizes *caches, Version *out, uint32_t max);
uint32_t fused_attention_tasks(const FusedAttentionShape *s, const Isa *isa, const Version *v);
// Bytes per part.
size_t  fused_attention_scratch(const FusedAttentionShape *s, const Isa *isa, const Version *v);
Traffic fused_attention_traffic(const FusedAttentionShape *s, const Isa *isa, const Version *v,
                                const CacheSizes *caches, uint32_t parts);

// The two products of a block of queries, and the layout of a part's scratch, in floats.
typedef struct FusedAttentionPlan {
    GemmShape to_scores, to_values;
    Version   scores_version, values_version;
    size_t    keys, values;  // packed panels of one head
    size_t    scores, row;   // [rows][row]
    size_t    sums;          // [rows]
    size_t    gemm, end;
} FusedAttentionPlan;

FusedAttentionPlan fused_attention_plan(const FusedAttentionShape *s, const Version *v,
                                        uint32_t lanes);
