// Onnx external: weights kept in a file beside the model, reached without leaving its folder.
#pragma once

#include <stddef.h>

#include "model/onnx_tensor.h"

// Reads the bytes of out into the store; out's type and shape are set, bytes is its size.
MUST_USE Err onnx_external_read(OnnxStore *s, const Onnx__TensorProto *p, Tensor *out,
                                size_t bytes);
