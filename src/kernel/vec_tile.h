// Tile: the one inner loop under convolutions and matrix products: rows x vectors of sums, held in
// registers while the depth streams past.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernel/vec.h"

// Depth is n_terms runs of `depth` numbers: number k of term t of row r is rows[r][terms[t] + k].
// For a matrix product a row is a row of the matrix and there is one term; for a convolution a row
// is a pixel and a term is a row of taps of one channel block.
typedef struct Tile {
    const float *const *rows;
    const int32_t      *terms;  // [n_terms] offsets; NULL: one term at 0
    uint32_t            n_terms, depth;
    const float        *weights;  // vector v: weights + v * weight_stride, [n_terms * depth][lanes]
    size_t              weight_stride;
    float              *out;  // number (row r, vector v) at out + r * row_stride + v * vec_stride
    size_t              row_stride, vec_stride;
    const float        *bias;    // [vectors][lanes], what sums start from; NULL: 0
    const float        *add;     // laid out as out, added before the clip when last; NULL: nothing
    float               lo, hi;  // clip when last
    uint8_t             more;    // sums start from what out holds (bias is not read)
    uint8_t             last;    // add and clip; otherwise store the sums as they are
} Tile;

typedef void TileFn(const Tile *t);

// rows 1..VEC(tile_rows)(vecs), vecs 1..4.
TileFn  *VEC(tile_find)(uint32_t rows, uint32_t vecs);
uint32_t VEC(tile_rows)(uint32_t vecs);  // most rows that fit the registers with that many vectors
