// String: counting n-grams in rows of words or numbers.
#pragma once

#include "base/tensor.h"

// n-grams of every length from shortest to longest, with 0 to skips words left out between two.
typedef struct RefGrams {
    int64_t        shortest, longest, skips;
    const int64_t *counts, *indexes;  // where each length starts in the pool; column of each n-gram
    const int64_t *ints;              // the pool, or
    const Str     *texts;
    const float   *weights;  // of each n-gram, or NULL
    int64_t        n_counts, n_pool;
    bool           clip;  // counts beyond 1 are 1
} RefGrams;

void ref_grams(const RefGrams *g, const Tensor *x, Tensor *y);
