// The n-grams of a TfIdfVectorizer, checked against each other.
#pragma once

#include "model/infer.h"

typedef struct MoveGrams {
    int64_t        shortest, longest, skips;
    const int64_t *counts,
        *indexes;            // [n_counts] where each length starts; [n_indexes] column of each
    const int64_t *ints;     // [n_pool], or
    const Str     *texts;    // [n_pool]
    const float   *weights;  // [n_indexes], or NULL
    int64_t        n_counts, n_indexes, n_pool, n_weights, width;
    bool           clip;  // counts beyond 1 are 1
} MoveGrams;

MUST_USE Err move_grams(const OpCall *c, Tensor *out, MoveGrams *g);
