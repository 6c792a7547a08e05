// Attention: the sizes of attention operators, read from attributes and shapes, and checked.
#pragma once

#include "model/op.h"

typedef struct Attention {
    int64_t batch, heads, kv_heads, queries;
    int64_t past, fresh;   // keys from before, and new ones
    int64_t size, v_size;  // of a head of Q and K, and of V
    float   scale, softcap;
    bool    packed;  // heads side by side in the last dimension: [batch, length, heads * size]
    bool    causal;
    int32_t stage;  // of the scores output: 0 raw, 1 capped, 2 masked, 3 shares
} Attention;

MUST_USE Err attention_read(const OpCall *c, Attention *out);     // ONNX's
MUST_USE Err attention_read_ms(const OpCall *c, Attention *out);  // com.microsoft's

// RotaryEmbedding as [batch, heads, length, size] of which the first rotated are turned.
typedef struct Rotary {
    int64_t batch, heads, length, size, rotated;
    bool    packed, interleaved;
} Rotary;

MUST_USE Err rotary_read(const OpCall *c, Rotary *out);
