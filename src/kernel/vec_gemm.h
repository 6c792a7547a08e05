// Copies of matrices in the order that register tiles read, for one instruction set.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/tile.h"
#include "kernel/vec.h"

// to[i][j] = from[i][j] * scale, and to[j][i] = from[i][j] * scale, for i < rows, j < columns.
void VEC(gemm_copy)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                    float scale, float *to, size_t to_row);
void VEC(gemm_turn)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                    float scale, float *to, size_t to_row);

// A tile of one row and 1..GEMM_ROW_VECS vectors.
void VEC(gemm_row)(const Tile *t, uint32_t vecs);

gemm_panels_fn VEC(gemm_panels);
gemm_fn        VEC(gemm);
