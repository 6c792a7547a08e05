// Tile: the one inner loop under convolutions and matrix products: rows x vectors of sums, held in
// registers while the depth streams past.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TILE_MAX_VECS = 4, TILE_MAX_ROWS = 24 };

// Depthwise is n_terms runs of `depth` numbers: number k of term t of row r is rows[r][terms[t] +
// k]. For a matrix product a row is a row of the matrix and there is one term; for a convolution a
// row is a pixel and a term is a row of taps of one channel block. After those may follow n_tails
// terms of another depth: the channels that do not fill a block.
typedef struct Tile {
    const float *const *rows;
    const int32_t      *terms;  // [n_terms + n_tails] offsets; NULL: one term at 0
    uint32_t            n_terms, depth, n_tails, tail_depth;
    const float        *weights;  // vector v: weights + v * weight_stride, [sum of depths][lanes]
    size_t              weight_stride;
    size_t              ahead;  // floats past weights: from there L2 gets half as much meanwhile
    float              *out;    // number (row r, vector v) at out + r * row_stride + v * vec_stride
    size_t              row_stride, vec_stride;
    const float        *bias;     // [vectors][lanes], what sums start from; NULL: 0
    const float        *add;      // laid out as out, added before the clip when last; NULL: nothing
    float               lo, hi;   // clip when last
    uint32_t            n_tiles;  // tiles below each other: rows, out and add go on; 0 counts as 1
    uint8_t             more;     // sums start from what out holds (bias is not read)
    uint8_t             last;     // add and clip; otherwise store the sums as they are
} Tile;

// The most rows whose sums fit the registers of an instruction set with that many vectors (1..4).
static inline uint32_t tile_most_rows(uint32_t registers, uint32_t vecs) {
    static const uint8_t few[] = {0, 12, 6, 4, 3}, many[] = {0, 24, 14, 9, 6};
    return registers >= 32 ? many[vecs] : few[vecs];
}
