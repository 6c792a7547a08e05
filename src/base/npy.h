// Npy: tensors in NumPy .npy files, versions 1 to 3, any byte order, C or Fortran order.
#pragma once

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"

// Strings ('S' and 'U') become Str elements in UTF-8. Trailing bytes are an error.
MUST_USE Err npy_read(const char *path, Arena *a, Tensor *out);
MUST_USE Err npy_read_bytes(const void *bytes, size_t len, Arena *a, Tensor *out);

// Replaces path atomically. bfloat16 is widened to float32, as NumPy has no such type; strings are
// written as 'U'. Sequences and optionals are an error: write their elements.
MUST_USE Err npy_write(const char *path, const Tensor *t);
