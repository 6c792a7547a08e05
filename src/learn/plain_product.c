// A panel of two vectors of b's columns is copied together once and stays in the nearest cache,
// while rows of a pass four at a time.
#include <string.h>

#include "learn/plain.h"
#include "learn/wide.h"

enum { LANES = 8, PANEL = 2 * LANES, DEPTH = 256 };
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

// b from (from, left) on, [depth][PANEL]; columns beyond the last are 0.
INLINE void pack(PlainView b, size_t depth, size_t cols, float *panel) {
    if (cols < PANEL) memset(panel, 0, depth * PANEL * sizeof *panel);
    if (b.col == 1) {
        for (size_t i = 0; i < depth; i++)
            memcpy(panel + i * PANEL, b.at + i * b.row, cols * sizeof *panel);
    } else {
        for (size_t j = 0; j < cols; j++)
            for (size_t i = 0; i < depth; i++) panel[i * PANEL + j] = b.at[i * b.row + j * b.col];
    }
}

// rows is a constant where this is inlined, so that the sums live in registers.
INLINE void tile(size_t rows, size_t depth, PlainView a, const float *panel, MatOut c) {
    Lanes left[4], right[4];
    for (size_t r = 0; r < rows; r++) {
        memcpy(&left[r], c.at + r * c.ld, sizeof(Lanes));
        memcpy(&right[r], c.at + r * c.ld + LANES, sizeof(Lanes));
    }
    for (size_t i = 0; i < depth; i++) {
        Lanes l, h;
        memcpy(&l, panel + i * PANEL, sizeof l);
        memcpy(&h, panel + i * PANEL + LANES, sizeof h);
        for (size_t r = 0; r < rows; r++) {
            left[r] += a.at[r * a.row + i * a.col] * l;
            right[r] += a.at[r * a.row + i * a.col] * h;
        }
    }
    for (size_t r = 0; r < rows; r++) {
        memcpy(c.at + r * c.ld, &left[r], sizeof(Lanes));
        memcpy(c.at + r * c.ld + LANES, &right[r], sizeof(Lanes));
    }
}

INLINE void rows_of(size_t rows, size_t cols, size_t depth, PlainView a, const float *panel,
                    MatOut c) {
    float  padded[4 * PANEL] = {0};
    MatOut to = cols < PANEL ? mat_out(padded, PANEL) : c;
    if (cols < PANEL) mat_copy(rows, cols, mat(c.at, c.ld), to);
    if (rows == 4)
        tile(4, depth, a, panel, to);
    else
        for (size_t r = 0; r < rows; r++)
            tile(1, depth, (PlainView){a.at + r * a.row, a.row, a.col}, panel,
                 mat_out(to.at + r * to.ld, to.ld));
    if (cols < PANEL) mat_copy(rows, cols, mat(padded, PANEL), c);
}

WIDE_LINES plain_product_lines(size_t m, size_t n, size_t k, PlainView a, PlainView b, MatOut c) {
    float panel[DEPTH * PANEL];
    for (size_t from = 0; from < k; from += DEPTH) {
        size_t depth = k - from < DEPTH ? k - from : DEPTH;
        for (size_t j = 0; j < n; j += PANEL) {
            size_t    cols = n - j < PANEL ? n - j : PANEL;
            PlainView part = {b.at + from * b.row + j * b.col, b.row, b.col};
            pack(part, depth, cols, panel);
            for (size_t i = 0; i < m; i += 4)
                rows_of(m - i < 4 ? m - i : 4, cols, depth,
                        (PlainView){a.at + i * a.row + from * a.col, a.row, a.col}, panel,
                        mat_out(c.at + i * c.ld + j, c.ld));
        }
    }
}
WIDE(extern, plain_product, (size_t m, size_t n, size_t k, PlainView a, PlainView b, MatOut c),
     (m, n, k, a, b, c))
