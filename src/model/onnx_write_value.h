// Onnx write value: tensors and declared types as ONNX's messages.
#pragma once

#include "base/arena.h"
#include "model/graph.h"
#include "model/onnx_emit.h"

typedef struct EmitTensor {
    const char   *name;  // NULL: none
    const Tensor *t;
    const Fill   *fill;     // NULL: the tensor has its data
    Arena        *scratch;  // room for the numbers of one fill; given back
} EmitTensor;

EmitBody onnx_emit_tensor;  // self: EmitTensor
EmitBody onnx_emit_type;    // self: Value, of which type, symbols and elem count
EmitBody onnx_emit_info;    // self: Value
