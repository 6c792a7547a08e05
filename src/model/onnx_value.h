// Onnx value: a tensor, sequence or optional from the bytes of a test data file.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

// kind DT_SEQ or DT_OPT reads a SequenceProto or OptionalProto, anything else a TensorProto.
MUST_USE Err onnx_value(const void *bytes, size_t n, DType kind, Arena *a, Tensor *out);
