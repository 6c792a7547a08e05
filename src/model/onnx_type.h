// Onnx type: declared types of values. They are claims of the file, never a size to allocate.
#pragma once

#include "base/arena.h"
#include "model/graph.h"

typedef struct Onnx__TypeProto Onnx__TypeProto;

// Fills type, symbols and elem of v. Fails on what cannot be represented; v is then unchanged.
MUST_USE Err onnx_type(Arena *a, const Onnx__TypeProto *p, Value *v);
