// Onnx function: calls of a model's own functions are replaced by their bodies as it is read.
#pragma once

#include "model/onnx_graph.h"

// A node to build: of the graph itself, or from the body of a function that it calls.
typedef struct OnnxNode {
    const Onnx__NodeProto *p;
    const OnnxScope       *scope;
    size_t                 index;  // in the file's graph
} OnnxNode;

typedef struct OnnxNodes {
    OnnxNode *at;
    size_t    n, cap;
} OnnxNodes;

MUST_USE Err onnx_function_list(OnnxFile *f);  // finds the file's functions

// The nodes of a graph with every call replaced, to a bounded depth and size.
MUST_USE Err onnx_function_expand(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p,
                                  OnnxNodes *out);
