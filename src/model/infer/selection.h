// Select: results that are as large as the numbers say. Inference counts with it, the run copies.
#pragma once

#include "model/infer/infer.h"

// Indices of elements; memory of the call's scratch arena.
typedef struct Selection {
    int64_t *at;
    int64_t  n;
} Selection;

MUST_USE Err selection_nonzero(const OpCall *c, const Tensor *x, Selection *s);

// Unique elements, or unique slices along an axis.
typedef struct UniqueSelection {
    Selection
        first;  // where each unique item stands first in the input, in the order of the output
    Selection inverse;  // for each item of the input, its number in the output
    int64_t  *counts;   // [first.n]
} UniqueSelection;
MUST_USE Err selection_unique(const OpCall *c, UniqueSelection *u);

// NonMaxSuppression: triples of batch, class, box; s->n counts triples.
MUST_USE Err selection_nms(const OpCall *c, Selection *s);

// StringNormalizer: the words of the input that are not stop words.
MUST_USE Err selection_words(const OpCall *c, Selection *s);
