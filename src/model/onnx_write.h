// Onnx write: a model as an ONNX file that reads back equal.
#pragma once

#include "model/model.h"

// Streams to a new file beside path, then replaces path. Filled constants get their numbers one at
// a time, so a model larger than memory can be written.
MUST_USE Err onnx_write(const Model *m, const char *path);
