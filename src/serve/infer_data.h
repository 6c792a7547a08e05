// Data: a tensor's elements written out in JSON, flat or nested as its shape says.
#pragma once

#include "serve/scan.h"

// t has type and shape; its elements are read at s into a. index is the input's, for errors.
MUST_USE Err infer_data_read(Scan *s, uint32_t index, Arena *a, Tensor *t);
