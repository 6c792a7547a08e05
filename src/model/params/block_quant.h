// BlockQuant: a matrix of 2, 4 or 8 bit integers with a scale and a zero point per block of a row.
#pragma once

#include "model/op.h"

// Rows of `columns` elements, stored as `blocks` blocks of `block` elements; the first element of a
// byte is in its low bits.
typedef struct BlockQuant {
    int64_t rows, columns, block, blocks;
    int64_t row_bytes;   // of the data: blocks are whole in MatMulNBits
    int64_t zero_bytes;  // per row of packed zero points; 0: none, or one float per block
    int32_t bits;
} BlockQuant;

// Inputs A, B, scales, zero points, g_idx (rejected), bias.
MUST_USE Err matmul_nbits_read(const OpCall *c, BlockQuant *out);
// Inputs data, indices, scales, zero points.
MUST_USE Err gather_nbits_read(const OpCall *c, BlockQuant *out);
