// Weights: words with weights, "1:76627 2:1818", drawn in proportion.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"

enum { WEIGHTS_MAX = 64 };

typedef struct Weights {
    const char *word[WEIGHTS_MAX];
    double      weight[WEIGHTS_MAX], sum;
    uint32_t    n;
} Weights;

MUST_USE Err weights_read(const char *what, const char *text, Arena *a, Weights *out);
uint32_t     weights_draw(const Weights *w, Rng *r);
