// ShapeOp: the shapes of an ONNX operator; attention has several.
#pragma once

#include "chip/cost/shape.h"
#include "model/graph.h"

enum { SHAPE_PARTS = 3, SHAPE_LIMIT = 1 << 28 };  // matrix products of an operator; size of a loop

typedef struct ShapeCall {
    OpCall        call;
    const Tensor *second;  // operand of the product; set by shape_parts
    const Tensor *out;     // NULL: omitted
} ShapeCall;

// Sizes of 0 mean 1, sizes above SHAPE_LIMIT are rejected later. Names are suffixes of the node's.
typedef Err ShapeFn(const ShapeCall *c, Shape *out, uint32_t *parts);

bool         shape_op(OpId op);                                       // whether it has shapes
MUST_USE Err shape_parts(ShapeCall *c, Shape *out, uint32_t *parts);  // out[SHAPE_PARTS]
