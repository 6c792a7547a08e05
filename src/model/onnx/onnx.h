// Onnx: reads and writes models and test values as ONNX files. Files are hostile input: a damaged
// one is an error, and its memory and time are bounded by its size.
#pragma once

#include "model/model.h"

// On failure *m is zeroed and err_why() names node, operator and reason.
MUST_USE Err onnx_read(const char *path, Model *m);

typedef struct OnnxPlace {
    const char *path;  // of the model's file: external data is beside it
    const char *root;  // folder that the operator named: links may lead below it; NULL: none
} OnnxPlace;

// The same from memory. place NULL rejects models with external data.
MUST_USE Err onnx_read_bytes(const void *bytes, size_t n, const char *name, const OnnxPlace *place,
                             Model *m);

// One value of a test data set. expect->dtype says whether the file holds a sequence or an
// optional; otherwise, or if expect is NULL, it holds a tensor. The value lives in the arena.
MUST_USE Err onnx_read_value(const char *path, const Tensor *expect, Arena *a, Tensor *out);

// Writes a new file and renames it to path. Random weights are generated one at a time, so that a
// model larger than memory can be written. The file reads back as an equal graph.
MUST_USE Err onnx_write(const Model *m, const char *path);
