// Tile: the inner loop of convolutions and matrix products: a register tile of rows x vectors of
// accumulators, updated once per depth step.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TILE_MAX_VECS = 4, TILE_MAX_ROWS = 24 };

// Depth is n_terms runs of `depth` floats: float k of term t of row r is rows[r][terms[t] + k]. In
// a matrix product a row is a matrix row and there is one term; in a convolution a row is a pixel
// and a term is one kernel row over one channel block. n_tails terms of tail_depth follow: the
// channels that do not fill a block.
typedef struct Tile {
    const float *const *rows;
    const int32_t      *terms;  // [n_terms + n_tails] offsets; NULL: one term at 0
    uint32_t            n_terms, depth, n_tails, tail_depth;
    const float        *weights;  // vector v: weights + v * weight_stride, [sum of depths][lanes]
    size_t              weight_stride;
    size_t              prefetch;  // floats from weights to those prefetched into L2; 0: none
    float              *out;       // row r, vector v: out + r * row_stride + v * vec_stride
    size_t              row_stride, vec_stride;
    const float        *bias;        // [vectors][lanes], initial sums; NULL: 0
    const float        *add;         // laid out as out, added before the clip if `last`; NULL: none
    float               lo, hi;      // clip if `last`
    uint32_t            n_tiles;     // tiles stacked along rows, out and add; 0 counts as 1
    uint8_t             accumulate;  // initial sums are the values in out; bias is not read
    uint8_t             last;        // final depth block: add and clip; else store raw sums
} Tile;

// Most rows of a tile with 1..4 vectors per row: their accumulators fit the vector registers.
static inline uint32_t tile_most_rows(uint32_t registers, uint32_t vecs) {
    static const uint8_t few[] = {0, 12, 6, 4, 3}, many[] = {0, 24, 14, 9, 6};
    return registers >= 32 ? many[vecs] : few[vecs];
}
