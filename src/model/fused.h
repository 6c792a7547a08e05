// Fused: the activation that com.microsoft's fused operators end with, read and checked.
#pragma once

#include "model/graph.h"

typedef enum FusedFn {
    FUSED_NONE,
    FUSED_RELU,
    FUSED_TANH,
    FUSED_SIGMOID,
    FUSED_LEAKY_RELU,  // a: slope
    FUSED_HARD_SIGMOID,
    FUSED_CLIP,  // a, b: bounds
} FusedFn;

typedef struct Fused {
    FusedFn fn;
    float   a, b;
} Fused;

MUST_USE Err fused_read(const Node *n, Fused *out);
