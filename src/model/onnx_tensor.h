// Onnx tensor: the numbers of a TensorProto, whatever field or file they are in.
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/tensor.h"

typedef struct Onnx__TensorProto       Onnx__TensorProto;
typedef struct Onnx__SparseTensorProto Onnx__SparseTensorProto;

// Where tensors live, where external data is, and how much more they may make of it.
typedef struct OnnxStore {
    Arena      *arena;
    const char *dir;            // folder of external data; NULL: external data is refused
    size_t      dense_left;     // bytes that sparse tensors may still grow to
    Map         files;          // external files met so far
    size_t      external_left;  // bytes that may still be read from them
    size_t      external_used;
} OnnxStore;

OnnxStore onnx_store(Arena *a, const char *dir);

// Numbers stay where protobuf unpacked them when they can. Reasons name the tensor.
MUST_USE Err onnx_tensor(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out);

// The same made dense, zero where the file is silent.
MUST_USE Err onnx_tensor_sparse(OnnxStore *s, const Onnx__SparseTensorProto *p, Tensor *out);

DType onnx_dtype(int32_t number);  // DT_NONE for what we do not represent
