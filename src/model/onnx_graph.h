// Onnx graph: a GraphProto becomes a Graph; names are resolved, Constant nodes become constants.
#pragma once

#include "model/model.h"
#include "model/onnx_tensor.h"

typedef struct Onnx__GraphProto         Onnx__GraphProto;
typedef struct Onnx__ModelProto         Onnx__ModelProto;
typedef struct Onnx__NodeProto          Onnx__NodeProto;
typedef struct Onnx__AttributeProto     Onnx__AttributeProto;
typedef struct Onnx__OperatorSetIdProto Onnx__OperatorSetIdProto;

// One file being read.
typedef struct OnnxFile {
    Arena                  *arena;
    const Onnx__ModelProto *proto;
    OnnxStore               store;
    Map                     ops;          // default domain, by name; filled as names are met
    Map                     functions;    // by domain and name
    size_t                  inline_left;  // bytes that inlined functions may still take
    uint32_t                n_calls;
} OnnxFile;

// The operator sets that nodes are written in: the model's, or those of the function around them.
typedef struct OnnxScope {
    Onnx__OperatorSetIdProto **imports;
    size_t                     n_imports;
    uint32_t                   calls;  // function calls around
} OnnxScope;

MUST_USE Err onnx_graph(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p, Graph *g);

// An attribute; the body of a control flow operator becomes a graph inside g.
MUST_USE Err onnx_attr(OnnxFile *f, const OnnxScope *s, const Onnx__AttributeProto *p, Graph *g,
                       Attr *out);

// Version of the operator set imported for a domain; 0 when there is none.
int64_t onnx_scope_version(const OnnxScope *s, const char *domain);
