// Npy: tensors in NumPy's .npy files, versions 1 to 3, any byte order and either index order.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"

// Strings ('S' and 'U') become Str elements in UTF-8. Bytes after the array are refused.
MUST_USE Err npy_read(const char *path, Arena *a, Tensor *out);
MUST_USE Err npy_read_bytes(const void *bytes, size_t len, Arena *a, Tensor *out);

// Replaces path atomically. bfloat16 is widened to float32, for NumPy has no such type; strings are
// written as 'U'. Sequences and optionals are refused: write their elements.
MUST_USE Err npy_write(const char *path, const Tensor *t);

// NpyHeader: the Python literal in front of an .npy array, read without trust.

enum { NPY_LEAD = 12, NPY_HEADER_MAX = 1 << 16 };

typedef struct NpyHeader {
    Tensor   t;           // type and shape, no data
    bool     fortran;     // first index moves fastest
    bool     swap;        // bytes of each number are the other way round
    char     text;        // 'U' or 'S' when t is of strings, else '\0'
    uint64_t item_bytes;  // one element in the file
    uint64_t data_bytes;
} NpyHeader;

// From the first bytes of a file (up to NPY_LEAD) to where the literal starts and how long it is.
MUST_USE Err npy_lead(const unsigned char *b, size_t len, size_t *start, size_t *text_len);
MUST_USE Err npy_header_parse(const char *text, size_t len, NpyHeader *h);
