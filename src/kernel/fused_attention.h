// FusedAttention: softmax(scale q k' + mask) v for every head; scores never leave the near caches.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/version.h"

// Where place s of head h of sequence b begins: b * batch + h * head + s * step numbers in.
typedef struct AttentionStrides {
    size_t batch, head, step;  // 0: shared
} AttentionStrides;

typedef struct FusedAttentionShape {
    uint32_t         batch, heads, kv_heads;  // heads is a multiple of kv_heads
    uint32_t         queries, keys, size, v_size;
    AttentionStrides q, k, v, y;
    bool             k_transposed;  // k lies as [size][keys]: its step leads to the next of size
    AttentionStrides mask;          // its step leads to the next query
    float            scale;
} FusedAttentionShape;

typedef struct FusedAttention {
    FusedAttentionShape shape;
    Version             version;  // one of fused_attention_versions
    const float        *q, *k, *v;
    const float        *mask;  // added to scores; NULL: none
    float              *y;
} FusedAttention;

// Vector kernel: isa->attention(attention, part). A query whose scores are all -INFINITY gets 0.

// The best guess comes first. Returns how many were written, at least 1.
uint32_t fused_attention_versions(const FusedAttentionShape *s, const Isa *isa,
                                  const CacheSizes *caches, Version *out, uint32_t max);
uint32_t fused_attention_tasks(const FusedAttentionShape *s, const Isa *isa, const Version *v);
size_t   fused_attention_scratch(const FusedAttentionShape *s, const Isa *isa,
                                 const Version *v);  // of each part
Traffic  fused_attention_traffic(const FusedAttentionShape *s, const Isa *isa, const Version *v,
                                 const CacheSizes *caches, uint32_t parts);

// The two products of a block of queries, and where the scratch of a part has what, in numbers.
typedef struct FusedAttentionPlan {
    GemmShape to_scores, to_values;
    Version   scores_version, values_version;
    size_t    keys, values;  // panels of one head
    size_t    scores, row;   // [rows][row]
    size_t    sums;          // [rows]
    size_t    gemm, end;
} FusedAttentionPlan;

FusedAttentionPlan fused_attention_plan(const FusedAttentionShape *s, const Version *v,
                                        uint32_t lanes);
