// Quant: the scales and zero points that quantised operators take, read and checked.
#pragma once

#include "model/graph.h"
#include "model/op.h"

// One number, or a list of count. Zero points: of type; NULL (left out) is accepted.
MUST_USE Err quant_zero(const Tensor *t, DType type, int64_t count, const char *what);
MUST_USE Err quant_scale(const Tensor *t, int64_t count, const char *what);  // float32

// x as [outer, axis, inner] and which scale each element has.
typedef struct QuantLayout {
    int64_t outer, axis, inner;
    int64_t block;  // 0: one scale for all; -1: one per index of axis; else one per block of them
} QuantLayout;

// Of QuantizeLinear and DequantizeLinear; zero, when there, must be shaped like scale. The counts
// are only meaningful for an x that tensor_measure accepts.
MUST_USE Err quant_layout(const Node *n, const Tensor *x, const Tensor *scale, const Tensor *zero,
                          QuantLayout *out);

// Qlinear: quantised operators that are a float operator between dequantised inputs and a
// quantised output.

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
