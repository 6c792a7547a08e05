// Infer_math: what the inference and the running of arithmetic both need to know of a node.
#pragma once

#include "model/op.h"

// The second operand in a shape that broadcasts by NumPy's rule. Before operator set 7 an attribute
// said where its dimensions lie; the slope of an old PRelu lies along the channels.
MUST_USE Err infer_second(const OpCall *c, Tensor *b);

// What Cast and CastLike cast to.
MUST_USE Err infer_cast_to(const OpCall *c, DType *to);
