// Qlinear: quantised operators that are a float operator between dequantised inputs and a
// quantised output.
#pragma once

#include "model/op.h"

enum { QLINEAR_OPERANDS = 64 };

// Operand i is input first + 3 i, with its scale and zero point behind it; result is the input
// that holds the output's scale, before its zero point.
typedef struct QLinear {
    OpId     inner;
    int32_t  version;  // of the inner operator
    uint32_t first, operands, result;
} QLinear;

MUST_USE Err qlinear_read(const OpCall *c, QLinear *out);

// The float operator's node: attributes of n, its own operator and number of inputs.
Node qlinear_node(const Node *n, const QLinear *q);
