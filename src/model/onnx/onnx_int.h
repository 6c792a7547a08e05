// Onnx tensor: the numbers of a TensorProto, whatever field or file they are in.
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/string_map.h"
#include "base/tensor.h"
#include "model/graph.h"
#include "model/model.h"

typedef struct Onnx__TensorProto       Onnx__TensorProto;
typedef struct Onnx__SparseTensorProto Onnx__SparseTensorProto;

// Where tensors live, where external data is, and how much more they may make of it.
typedef struct OnnxStore {
    Arena      *arena;
    const char *dir;            // folder of external data; NULL: external data is refused
    size_t      dense_left;     // bytes that sparse tensors may still grow to
    StringMap   files;          // external files met so far
    size_t      external_left;  // bytes that may still be read from them
    size_t      external_used;
} OnnxStore;

OnnxStore onnx_store(Arena *a, const char *dir);

// Numbers stay where protobuf unpacked them when they can. Reasons name the tensor.
MUST_USE Err onnx_read_tensor(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out);

// The same made dense, zero where the file is silent.
MUST_USE Err onnx_read_sparse(OnnxStore *s, const Onnx__SparseTensorProto *p, Tensor *out);

DType onnx_dtype(int32_t number);  // DT_NONE for what we do not represent

// Onnx external: weights kept in a file beside the model, reached without leaving its folder.

// Reads the bytes of out into the store; out's type and shape are set, bytes is its size.
MUST_USE Err onnx_external_read(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out,
                                size_t bytes);

// Onnx graph: a GraphProto becomes a Graph; names are resolved, Constant nodes become constants.

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
    StringMap               ops;          // default domain, by name; filled as names are met
    StringMap               functions;    // by domain and name
    size_t                  inline_left;  // bytes that inlined functions may still take
    uint32_t                n_calls;
} OnnxFile;

// The operator sets that nodes are written in: the model's, or those of the function around them.
typedef struct OnnxScope {
    Onnx__OperatorSetIdProto **imports;
    size_t                     n_imports;
    uint32_t                   calls;  // function calls around
} OnnxScope;

MUST_USE Err onnx_read_graph(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p, Graph *g);

// An attribute; the body of a control flow operator becomes a graph inside g.
MUST_USE Err onnx_read_attr(OnnxFile *f, const OnnxScope *s, const Onnx__AttributeProto *p,
                            Graph *g, Attr *out);

// Version of the operator set imported for a domain; 0 when there is none.
int64_t onnx_scope_version(const OnnxScope *s, const char *domain);

// Onnx type: declared types of values. They are claims of the file, never a size to allocate.

typedef struct Onnx__TypeProto Onnx__TypeProto;

// Fills type, symbols and elem of v. Fails on what cannot be represented; v is then unchanged.
MUST_USE Err onnx_read_type(Arena *a, const Onnx__TypeProto *p, Value *v);

// Onnx constant: a Constant node is a tensor, in any of the forms the operator takes.

MUST_USE Err onnx_read_constant(OnnxFile *f, const Onnx__NodeProto *p, Tensor *out);

// Onnx function: calls of a model's own functions are replaced by their bodies as it is read.

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

// Onnx clone: copies of a function's nodes under the names and attributes of one call.

typedef struct Onnx__FunctionProto Onnx__FunctionProto;

typedef struct OnnxCall {
    OnnxFile                  *file;
    const Onnx__FunctionProto *function;
    const Onnx__NodeProto     *node;             // the call
    const char                *prefix;           // of every name that is not a parameter
    StringMap                  inputs, outputs;  // parameters by name, to their places
} OnnxCall;

// A copy that shares all numbers with the original and draws on the file's inline_left.
MUST_USE Err onnx_clone(const OnnxCall *c, const Onnx__NodeProto *p, Onnx__NodeProto **out);

// Onnx proto: messages of ONNX's schema, unpacked into an arena under a cap.

typedef struct ProtobufCMessageDescriptor ProtobufCMessageDescriptor;

// Checks the bytes, then unpacks them. The message lives in the arena and borrows nothing from
// them.
MUST_USE Err onnx_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n,
                         Arena *a, void **out);

// Onnx value: a tensor, sequence or optional from the bytes of a test data file.

// kind DT_SEQ or DT_OPT reads a SequenceProto or OptionalProto, anything else a TensorProto.
MUST_USE Err onnx_parse_value(const void *bytes, size_t n, DType kind, Arena *a, Tensor *out);
