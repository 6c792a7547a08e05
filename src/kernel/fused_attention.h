// FusedAttention: softmax(scale q k' + mask) v per head, in blocks of queries, with the scores in
// L2.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/version.h"

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
    float            scale;
} FusedAttentionShape;

// Arguments of isa->attention(&attention, part). A query with all scores -INFINITY gets 0.
typedef struct FusedAttention {
    FusedAttentionShape shape;
    Version             version;  // one of fused_attention_versions
    const float        *q, *k, *v;
    const float        *mask;  // added to the scores; NULL: none
    float              *y;
} FusedAttention;

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
