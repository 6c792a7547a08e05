// WeightedChoice: words with weights, "1:76627 2:1818", drawn with that probability.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"

enum { WEIGHTED_CHOICE_MAX = 64 };

typedef struct WeightedChoice {
    const char *word[WEIGHTED_CHOICE_MAX];
    double      weight[WEIGHTED_CHOICE_MAX], sum;
    uint32_t    n;
} WeightedChoice;

MUST_USE Err weighted_choice_read(const char *what, const char *text, Arena *a,
                                  WeightedChoice *out);
uint32_t     weighted_choice_draw(const WeightedChoice *w, Rng *r);
