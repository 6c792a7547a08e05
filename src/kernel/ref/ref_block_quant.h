// Reference of block-quantised matrices: rows of integers of a few bits with a scale and a zero
// point per block.
#pragma once

#include "base/arena.h"
#include "base/tensor.h"

typedef struct RefBlocks {
    const Tensor *data;    // bytes; the first element of a byte is in its low bits
    const Tensor *scales;  // [rows][blocks]
    const Tensor *zeros;   // bytes packed like the data, or [rows][blocks]; NULL: 2^(bits - 1)
    int64_t       columns, block, blocks, row_bytes, zero_bytes;
    int32_t       bits;
} RefBlocks;

void ref_blocks_row(const RefBlocks *p, int64_t row, double *out);  // [columns]

// y [m, rows] = a [m, columns] times the transposed matrix, plus bias [rows] (may be NULL).
MUST_USE Err ref_blocks_matmul(const RefBlocks *p, int64_t rows, const Tensor *a,
                               const Tensor *bias, Tensor *y, Arena *scratch);

// Slice i of y is that of `each` rows at index[i] of `count` slices; zeros if there is none.
MUST_USE Err ref_blocks_gather(const RefBlocks *p, int64_t count, int64_t each, const Tensor *index,
                               Tensor *y, Arena *scratch);
