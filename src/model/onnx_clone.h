// Onnx clone: copies of a function's nodes under the names and attributes of one call.
#pragma once

#include "model/onnx_graph.h"

typedef struct Onnx__FunctionProto Onnx__FunctionProto;

typedef struct OnnxCall {
    OnnxFile                  *file;
    const Onnx__FunctionProto *function;
    const Onnx__NodeProto     *node;             // the call
    const char                *prefix;           // of every name that is not a parameter
    Map                        inputs, outputs;  // parameters by name, to their places
} OnnxCall;

// A copy that shares all numbers with the original and draws on the file's inline_left.
MUST_USE Err onnx_clone(const OnnxCall *c, const Onnx__NodeProto *p, Onnx__NodeProto **out);
