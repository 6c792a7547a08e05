// Quant: scales and zero points of quantised operators, checked, and QLinear operators.
#pragma once

#include "model/graph.h"
#include "model/op.h"

// Fail unless t has one element or is a list of count. A zero point has the given type; NULL is
// valid.
MUST_USE Err quant_zero(const Tensor *t, DType type, int64_t count, const char *what);
MUST_USE Err quant_scale(const Tensor *t, int64_t count, const char *what);  // float32

// x as [outer, axis, inner], and the granularity of its scales.
typedef struct QuantLayout {
    int64_t outer, axis, inner;
    int64_t block;  // 0: per tensor; -1: per index of axis; else per block of so many indices
} QuantLayout;

// Of QuantizeLinear and DequantizeLinear. zero is NULL or has the shape of scale. The counts are
// valid for an x that tensor_measure accepts.
MUST_USE Err quant_layout(const Node *n, const Tensor *x, const Tensor *scale, const Tensor *zero,
                          QuantLayout *out);

// com.microsoft's QLinear operators: a float operator on dequantised inputs, with a quantised
// output.
enum { QLINEAR_OPERANDS = 64 };

// Operand i is input first + 3 i, followed by its scale and zero point; the output's scale is input
// `result`, followed by its zero point.
typedef struct QLinear {
    OpId     inner;
    int32_t  version;  // of the inner operator
    uint32_t first, operands, result;
} QLinear;

MUST_USE Err qlinear_read(const OpCall *c, QLinear *out);

// The float operator's node, with the attributes of n.
Node qlinear_node(const Node *n, const QLinear *q);
