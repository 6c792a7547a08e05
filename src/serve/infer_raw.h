// Raw: a tensor's numbers as they are in memory, little-endian, as the binary extension sends them.
#pragma once

#include "base/tensor.h"

// t has type and shape, a tensor_measure that holds; its data becomes the bytes themselves where
// they are aligned, a copy in a where they are not. ERR_INVALID says what is wrong with them.
MUST_USE Err infer_raw_read(Tensor *t, unsigned char *bytes, size_t len, Arena *a);
