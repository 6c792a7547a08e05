// ShapeOp: how operators become shapes.
#pragma once

#include "chip/cost/shape.h"
#include "model/graph.h"

enum { SHAPE_PARTS = 3, SHAPE_LIMIT = 1 << 28 };  // products of an operator; size of a loop

typedef struct ShapeCall {
    OpCall        call;
    const Tensor *second;  // factor; shape_parts finds it
    const Tensor *out;     // NULL where left out
} ShapeCall;

// Sizes that are 0 mean 1, sizes beyond SHAPE_LIMIT too large; names are what to add to the node's.
typedef Err ShapeFn(const ShapeCall *c, Shape *out, uint32_t *parts);

bool         shape_op(OpId op);  // whether it is made of products
MUST_USE Err shape_parts(ShapeCall *c, Shape *out, uint32_t *parts);  // out[SHAPE_PARTS]
