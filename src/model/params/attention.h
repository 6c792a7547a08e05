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
    int32_t stage;  // of the scores output: 0 raw, 1 capped, 2 masked, 3 softmax
} Attention;

MUST_USE Err attention_read(const OpCall *c, Attention *out);     // ONNX's
MUST_USE Err attention_read_ms(const OpCall *c, Attention *out);  // com.microsoft's

// RotaryEmbedding of [batch, heads, length, size]; the first `rotated` elements of a head rotate.
typedef struct Rotary {
    int64_t batch, heads, length, size, rotated;
    bool    packed, interleaved;
} Rotary;

MUST_USE Err rotary_read(const OpCall *c, Rotary *out);
