// Functions shared by the files of kernel/vec, called directly instead of through Isa.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/elementwise.h"
#include "kernel/gemm.h"
#include "kernel/isa.h"
#include "kernel/normalize.h"
#include "kernel/tile.h"
#include "kernel/vec/vec.h"

// vec_tile.c

typedef void TileFn(const Tile *t);

// The code of a register tile of rows 1..VEC(tile_rows)(vecs) and vecs 1..TILE_MAX_VECS.
TileFn  *VEC(tile_find)(uint32_t rows, uint32_t vecs);
uint32_t VEC(tile_rows)(uint32_t vecs);  // most rows: their accumulators fit the registers
tile_fn  VEC(tile);                      // tile_find and run

// vec_gemm.c

gemm_panels_fn VEC(gemm_panels);
gemm_fn        VEC(gemm);
// Runs the epilogue's program over columns [column, column + n) of rows of the matrix that starts
// at y.
void VEC(gemm_program)(const Gemm *g, size_t y, uint32_t row, uint32_t rows, uint32_t column,
                       uint32_t n);

// vec_narrow.c

// Float panels [columns][k][lanes] of narrow weights, from vector `column` on.
void VEC(narrow_widen)(const GemmShape *s, const void *weights, uint32_t column, uint32_t columns,
                       float *to);
void VEC(narrow_rows)(const Gemm *g, Part part);  // a product of version GEMM_WIDEN

// vec_elementwise.c

ewise_span_fn VEC(ewise_span);

// Runs the epilogue's program over y[at, at + n): results of one block of output channels that
// starts with channel `column`.
VEC_INLINE void epilogue_span(const Epilogue *f, float *y, size_t at, size_t column, size_t n) {
    ElementwiseInput in[EWISE_MAX_ARGS] = {{y + at, EWISE_CONTIGUOUS}};
    for (uint32_t i = 1; i < f->program->n_args; i++) {
        in[i] = f->args[i];
        if (in[i].mode != EWISE_SCALAR) in[i].at += in[i].mode == EWISE_CONTIGUOUS ? at : column;
    }
    VEC(ewise_span)(f->program, in, y + at, n);
}

// vec_normalize_lanes.c: each lane of a vector is a set of its own.

// One task: the sets of row `row` from inner position `inner` on.
void VEC(normalize_lanes)(const Normalize *r, const NormalizeArgs *d, size_t row, size_t inner);

// Softmax of VEC_LANES sets: element i of all of them is the vector x[i].
void VEC(softmax_lanes)(NormalizeOp op, Vf *x, size_t n);
