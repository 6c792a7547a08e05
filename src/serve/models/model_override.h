// ModelOverride: the part of a model configuration that a client may give when it loads a model.
#pragma once

#include "base/err.h"
#include "base/tensor.h"
#include "compile/weight_width.h"

typedef struct ModelOverride {
    bool        has_max_batch, has_weights;
    int32_t     max_batch;  // the setting of that name; Triton's max_batch_size
    WeightWidth weights;    // the setting of that name; parameter qos.weights
} ModelOverride;

// text: JSON in the form of Triton's model configuration. ERR_PARSE, ERR_INVALID: it is not one, or
// sets what cannot be changed here.
MUST_USE Err model_override_parse(Str text, ModelOverride *out);
