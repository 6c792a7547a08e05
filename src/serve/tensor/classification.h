// Classification: the highest values of an output as text, VALUE:INDEX or VALUE:INDEX:LABEL.
#pragma once

#include "serve/tensor/infer_request.h"

enum { CLASSIFICATION_ELEMENTS = 1 << 20 };  // most elements of an output that is ranked

// Ranks t's elements, of each batch row or of the whole tensor, and replaces it by BYTES of shape
// [batch, classes] or [classes]; equal values in order of their index, NaN last. ERR_LIMIT: the
// tensor has more than CLASSIFICATION_ELEMENTS, or the text needs more than *left bytes.
MUST_USE Err classification_apply(const TensorSpec *spec, bool batched, int64_t classes,
                                  size_t *left, Arena *a, Tensor *t);
