// Onnx read: models and test values from ONNX files. A hostile file gets an error, nothing worse.
#pragma once

#include "model/model.h"

// On failure *m is zeroed and err_why() names node, operator and reason.
MUST_USE Err onnx_read(const char *path, Model *m);

// The same from memory. External data is looked for below dir; NULL refuses it.
MUST_USE Err onnx_read_bytes(const void *bytes, size_t n, const char *name, const char *dir,
                             Model *m);

// One value of a test data set. expect decides what the file holds: a sequence, an optional, or
// (also when NULL) a tensor. The value lives in the arena.
MUST_USE Err onnx_read_value(const char *path, const Tensor *expect, Arena *a, Tensor *out);

// Onnx write: a model as an ONNX file that reads back equal.

// Streams to a new file beside path, then replaces path. Filled constants get their numbers one at
// a time, so a model larger than memory can be written.
MUST_USE Err onnx_write(const Model *m, const char *path);
