// Select: results that are as large as the numbers say. Inference counts with it, the run copies.
#pragma once

#include "model/infer.h"

// Indices of elements; memory of the call's scratch arena.
typedef struct Selected {
    int64_t *at;
    int64_t  n;
} Selected;

MUST_USE Err select_nonzero(const OpCall *c, const Tensor *x, Selected *s);

// Unique elements, or unique slices along an axis.
typedef struct SelectUnique {
    Selected first;  // where each unique item stands first in the input, in the order of the output
    Selected inverse;  // for each item of the input, its number in the output
    int64_t *counts;   // [first.n]
} SelectUnique;
MUST_USE Err select_unique(const OpCall *c, SelectUnique *u);

// NonMaxSuppression: triples of batch, class, box; s->n counts triples.
MUST_USE Err select_boxes(const OpCall *c, Selected *s);

// StringNormalizer: the words of the input that are not stop words.
MUST_USE Err select_words(const OpCall *c, Selected *s);
