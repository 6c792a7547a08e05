// NpyHeader: the Python literal in front of an .npy array, read without trust.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/tensor.h"

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
