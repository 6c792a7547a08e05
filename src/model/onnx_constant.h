// Onnx constant: a Constant node is a tensor, in any of the forms the operator takes.
#pragma once

#include "model/onnx_graph.h"

MUST_USE Err onnx_constant(OnnxFile *f, const Onnx__NodeProto *p, Tensor *out);
