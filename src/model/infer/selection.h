// Selection: data-dependent outputs of NonZero, Compress, Unique, NonMaxSuppression and
// StringNormalizer. Inference takes the output's size from it, the run its elements.
#pragma once

#include "model/infer/infer.h"

// Indices of the selected elements, in the call's scratch arena.
typedef struct Selection {
    int64_t *at;
    int64_t  n;
} Selection;

MUST_USE Err selection_nonzero(const OpCall *c, const Tensor *x, Selection *s);

// Unique elements, or unique slices along an axis.
typedef struct UniqueSelection {
    Selection first;    // the first occurrence of each unique item, in output order
    Selection inverse;  // for each item of the input, its index in first
    int64_t  *counts;   // [first.n] occurrences
} UniqueSelection;
MUST_USE Err selection_unique(const OpCall *c, UniqueSelection *u);

// NonMaxSuppression: at holds s->n triples of batch, class, box.
MUST_USE Err selection_nms(const OpCall *c, Selection *s);

// StringNormalizer: the words that are not stop words.
MUST_USE Err selection_words(const OpCall *c, Selection *s);
