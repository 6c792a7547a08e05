// Register tiles of one instruction set, by size.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/elementwise.h"
#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/normalize.h"
#include "kernel/tile.h"
#include "kernel/vec/vec.h"

typedef void TileFn(const Tile *t);

// rows 1..VEC(tile_rows)(vecs), vecs 1..4.
TileFn  *VEC(tile_find)(uint32_t rows, uint32_t vecs);
uint32_t VEC(tile_rows)(uint32_t vecs);  // most rows that fit the registers with that many vectors
tile_fn  VEC(tile);                      // finds and runs one

// Copies of matrices in the order that register tiles read, for one instruction set.

// to[i][j] = from[i][j] * scale, and to[j][i] = from[i][j] * scale, for i < rows, j < columns.
void VEC(gemm_copy)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                    float scale, float *to, size_t to_row);
void VEC(gemm_transpose)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                         float scale, float *to, size_t to_row);

// A tile of one row and 1..GEMM_ROW_VECS vectors.
void VEC(gemm_row)(const Tile *t, uint32_t vecs);

gemm_panels_fn VEC(gemm_panels);
gemm_fn        VEC(gemm);

// VecChain: chains for other vector files, without the way through Isa.

ewise_span_fn VEC(ewise_span);

// The chain of a Epilogue over a span of blocked results that are still close.

// y[at, at + n) holds the columns of one block; the first of them is `column`.
VEC_INLINE void epilogue_span(const Epilogue *f, float *y, size_t at, size_t column, size_t n) {
    ElementwiseInput in[EWISE_MAX_ARGS] = {{y + at, EWISE_CONTIGUOUS}};
    for (uint32_t i = 1; i < f->program->n_args; i++) {
        in[i] = f->args[i];
        if (in[i].mode != EWISE_SCALAR) in[i].at += in[i].mode == EWISE_CONTIGUOUS ? at : column;
    }
    VEC(ewise_span)(f->program, in, y + at, n);
}

// VecRowwise: softmax and norms where each lane of a vector is a set of its
// own.

// Sets `place` and following of row `row`, as many as a task takes.
void VEC(places)(const Normalize *r, const NormalizeArgs *d, size_t row, size_t place);

// Softmax of VEC_LANES sets: number i of them is the vector x[i].
void VEC(places_softmax)(NormalizeOp op, Vf *x, size_t n);
