// Onnx internals: what the files of the ONNX reader share, by file.
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/string_map.h"
#include "base/tensor.h"
#include "model/graph.h"
#include "model/model.h"
#include "model/onnx/onnx.h"

typedef struct Onnx__AttributeProto     Onnx__AttributeProto;
typedef struct Onnx__FunctionProto      Onnx__FunctionProto;
typedef struct Onnx__GraphProto         Onnx__GraphProto;
typedef struct Onnx__ModelProto         Onnx__ModelProto;
typedef struct Onnx__NodeProto          Onnx__NodeProto;
typedef struct Onnx__OperatorSetIdProto Onnx__OperatorSetIdProto;
typedef struct Onnx__SparseTensorProto  Onnx__SparseTensorProto;
typedef struct Onnx__TensorProto        Onnx__TensorProto;
typedef struct Onnx__TypeProto          Onnx__TypeProto;

enum { ONNX_TRUSTED = 3 };

// Destination of tensor data, source of external data, and the budgets of both.
typedef struct OnnxStore {
    Arena           *arena;
    const OnnxPlace *place;                  // of external data; NULL: external data is rejected
    const char      *listed;                 // the model's folder as named; NULL: not yet needed
    const char      *trusted[ONNX_TRUSTED];  // real folders that external data is in; NULL: none
    size_t           dense_left;             // bytes left for sparse tensors made dense
    StringMap        files;                  // external files read so far
    size_t           external_left;          // bytes left to read from them
    size_t           external_used;
} OnnxStore;

// One file being read.
typedef struct OnnxFile {
    Arena                  *arena;
    const Onnx__ModelProto *proto;
    OnnxStore               store;
    StringMap               ops;          // operators of the default domain found so far, by name
    StringMap               functions;    // by domain and name
    size_t                  inline_left;  // bytes left for inlined functions
    uint32_t                n_calls;
} OnnxFile;

// The operator sets that nodes refer to: the model's, or those of the enclosing function.
typedef struct OnnxScope {
    Onnx__OperatorSetIdProto **imports;
    size_t                     n_imports;
    uint32_t                   calls;  // depth of function calls
} OnnxScope;

static inline const char *onnx_text(const char *s) { return s != NULL ? s : ""; }

// onnx_read.c: a value of a test data file. kind: DT_SEQ for a SequenceProto, DT_OPT for an
// OptionalProto, else a TensorProto.
MUST_USE Err onnx_parse_value(const void *bytes, size_t n, DType kind, Arena *a, Tensor *out);

// onnx_graph.c: a GraphProto becomes a Graph: names are resolved, Constant nodes become constants.
MUST_USE Err onnx_read_graph(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p, Graph *g);

// Version of the operator set imported for a domain; 0 when there is none.
int64_t onnx_scope_version(const OnnxScope *s, const char *domain);

// onnx_function.c: calls of the model's own functions are replaced by copies of their bodies.
typedef struct OnnxNode {
    const Onnx__NodeProto *p;
    const OnnxScope       *scope;
    size_t                 index;  // in the graph of the file, also for nodes of inlined functions
} OnnxNode;

typedef struct OnnxNodes {
    OnnxNode *at;
    size_t    n, cap;
} OnnxNodes;

MUST_USE Err onnx_function_list(OnnxFile *f);  // registers the file's functions

// The nodes of a graph with every call inlined, to a bounded depth and size.
MUST_USE Err onnx_function_expand(OnnxFile *f, const OnnxScope *s, const Onnx__GraphProto *p,
                                  OnnxNodes *out);

// onnx_tensor.c: the data of a TensorProto from whichever field or file holds it. It stays where
// protobuf unpacked it if possible. Reasons name the tensor.
OnnxStore    onnx_store(Arena *a, const OnnxPlace *place);
MUST_USE Err onnx_read_tensor(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out);
MUST_USE Err onnx_read_sparse(OnnxStore *s, const Onnx__SparseTensorProto *p,
                              Tensor *out);  // dense

// Fills type, symbols and elem of v from a declared type. Fails on types that Tensor cannot
// represent; v is then unchanged. Declared sizes are never used to allocate.
MUST_USE Err onnx_read_type(Arena *a, const Onnx__TypeProto *p, Value *v);

// onnx_external.c: the data, `bytes` long, of a tensor with type and shape set, from a file
// below the store's dir.
MUST_USE Err onnx_external_read(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out,
                                size_t bytes);
