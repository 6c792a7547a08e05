// Attention: the parameters of attention operators, read from attributes and shapes and checked.
#pragma once

#include "model/op.h"

typedef struct Attention {
    int64_t batch, heads, kv_heads, queries;
    int64_t past, fresh;   // keys in the cache, new keys
    int64_t size, v_size;  // elements per head of Q and K, and of V
    float   scale, softcap;
    bool    packed;  // heads in the last dimension: [batch, length, heads * size]
    bool    causal;
    int64_t window;  // keys that a causal query attends to, up to its own; 0: all
    int32_t stage;   // of the scores output: 0 raw, 1 capped, 2 masked, 3 softmax
} Attention;

MUST_USE Err attention_read(const OpCall *c, Attention *out);     // ONNX's
MUST_USE Err attention_read_ms(const OpCall *c, Attention *out);  // com.microsoft's

// com.microsoft's GroupQueryAttention. Sequence b has seqlens_k[b] + 1 keys, the last `queries` of
// them new ones; a prompt has no others.
typedef struct GroupAttention {
    Attention heads;    // past: rows of the cache; fresh: as queries
    int64_t   total;    // most keys of a sequence; DIM_UNKNOWN: that input has no data yet
    int64_t   present;  // rows of the cache after the call: the larger of past and total
    bool      prompt;
    bool      joined;   // input 0 is [batch, length, heads of Q, K and V]
    int64_t   rotated;  // elements of a head of Q and K that rotate; 0: none
    bool      interleaved;
} GroupAttention;

MUST_USE Err group_attention_read(const OpCall *c, GroupAttention *out);  // attention_ms.c
// Keys of sequence b; fails if seqlens_k does not fit the caches. Its past is total - queries, or
// 0.
MUST_USE Err group_attention_length(const GroupAttention *g, const int32_t *seqlens, int64_t b,
                                    int64_t *total);
int64_t      group_attention_past(const GroupAttention *g, int64_t total);

// com.microsoft's MultiHeadAttention. The keys are [batch, length, heads * size] or, of another
// sequence, [batch, heads, length, size].
MUST_USE Err attention_read_multi(const OpCall *c, Attention *out);  // attention_ms.c

// RotaryEmbedding of [batch, heads, length, size]; the first `rotated` elements of a head rotate.
typedef struct Rotary {
    int64_t batch, heads, length, size, rotated;
    bool    packed, interleaved;
    bool    first_id;  // one position id: that of the first position of each sequence
} Rotary;

MUST_USE Err rotary_read(const OpCall *c, Rotary *out);     // ONNX's
MUST_USE Err rotary_read_ms(const OpCall *c, Rotary *out);  // com.microsoft's; attention_ms.c
