// Infer_math: what the inference and the running of arithmetic both need to know of a node.
#pragma once

#include "model/graph.h"
#include "model/op.h"

// The second operand in a shape that broadcasts by NumPy's rule. Before operator set 7 an attribute
// said where its dimensions lie; the slope of an old PRelu lies along the channels.
MUST_USE Err infer_second(const OpCall *c, Tensor *b);

// What Cast and CastLike cast to.
MUST_USE Err infer_cast_to(const OpCall *c, DType *to);

// Which dimensions a reduction takes: an attribute, or an input in newer operator sets. *known is
// false when that input's numbers are not there yet.
MUST_USE Err infer_reduce_along(const OpCall *c, bool along[TENSOR_MAX_RANK], bool *known);

// Along which dimensions Softmax and its kin share: one, or before operator set 13 all from it on.
MUST_USE Err infer_softmax_along(const OpCall *c, bool along[TENSOR_MAX_RANK]);

// Which elements a MeanVarianceNormalization or LpNormalization takes together.
MUST_USE Err infer_set_along(const OpCall *c, bool along[TENSOR_MAX_RANK]);

bool   infer_batch_trains(const Node *n);  // BatchNormalization computes its own statistics
Tensor infer_channels(const Tensor *x, bool spatial);  // x as N x C x rest; not spatial: rest is 1
