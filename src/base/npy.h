// Npy: tensors in NumPy's .npy files, versions 1 to 3, any byte order and either index order.
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"

// Strings ('S' and 'U') become Str elements in UTF-8. Bytes after the array are refused.
MUST_USE Err npy_read(const char *path, Arena *a, Tensor *out);
MUST_USE Err npy_read_bytes(const void *bytes, size_t len, Arena *a, Tensor *out);

// Replaces path atomically. bfloat16 is widened to float32, for NumPy has no such type; strings are
// written as 'U'. Sequences and optionals are refused: write their elements.
MUST_USE Err npy_write(const char *path, const Tensor *t);
