// A panel of b, two vectors wide, is packed once and stays in the L1 cache while the rows of a
// pass, four at a time.
#include <string.h>

#include "learn/multiversion.h"
#include "learn/repro_gemm.h"

enum { LANES = 8, PANEL = 2 * LANES, ROWS = 4, DEPTH = 256 };
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline)) void

// Packs b [depth][cols] as [depth][PANEL], padded with 0.
INLINE pack(GemmView b, size_t depth, size_t cols, float *panel) {
    if (cols < PANEL) memset(panel, 0, depth * PANEL * sizeof *panel);
    if (b.col == 1 && cols == PANEL) {
        for (size_t i = 0; i < depth; i++)
            memcpy(panel + i * PANEL, b.at + i * b.row, PANEL * sizeof *panel);
    } else {
        for (size_t j = 0; j < cols; j++)
            for (size_t i = 0; i < depth; i++) panel[i * PANEL + j] = b.at[i * b.row + j * b.col];
    }
}

// One variable per sum, so that compilers keep them in registers.
INLINE tile4(size_t depth, const float *a, size_t row, size_t col, const float *panel, MatOut c) {
    Lanes       *to0 = (Lanes *)c.at, *to1 = (Lanes *)(c.at + c.ld);
    Lanes       *to2 = (Lanes *)(c.at + 2 * c.ld), *to3 = (Lanes *)(c.at + 3 * c.ld);
    Lanes        l0 = to0[0], l1 = to1[0], l2 = to2[0], l3 = to3[0];
    Lanes        h0 = to0[1], h1 = to1[1], h2 = to2[1], h3 = to3[1];
    const float *a3 = a + 3 * row;
    for (size_t i = 0; i < depth; i++, a += col, a3 += col) {
        Lanes l = *(const Lanes *)(panel + i * PANEL),
              h = *(const Lanes *)(panel + i * PANEL + LANES);
        l0 += a[0] * l;
        h0 += a[0] * h;
        l1 += a[row] * l;
        h1 += a[row] * h;
        l2 += a[2 * row] * l;
        h2 += a[2 * row] * h;
        l3 += a3[0] * l;
        h3 += a3[0] * h;
    }
    to0[0] = l0, to1[0] = l1, to2[0] = l2, to3[0] = l3;
    to0[1] = h0, to1[1] = h1, to2[1] = h2, to3[1] = h3;
}

INLINE tile1(size_t depth, const float *a, size_t col, const float *panel, float *c) {
    Lanes *to = (Lanes *)c, l = to[0], h = to[1];
    for (size_t i = 0; i < depth; i++) {
        l += a[i * col] * *(const Lanes *)(panel + i * PANEL);
        h += a[i * col] * *(const Lanes *)(panel + i * PANEL + LANES);
    }
    to[0] = l, to[1] = h;
}

// Partial tiles, through a padded copy.
INLINE edge(size_t rows, size_t cols, size_t depth, const float *a, size_t row, size_t col,
            const float *panel, MatOut c) {
    float padded[ROWS * PANEL] = {0};
    for (size_t r = 0; r < rows; r++)
        memcpy(padded + r * PANEL, c.at + r * c.ld, cols * sizeof *padded);
    if (rows == ROWS)
        tile4(depth, a, row, col, panel, mat_out(padded, PANEL));
    else
        for (size_t r = 0; r < rows; r++) tile1(depth, a + r * row, col, panel, padded + r * PANEL);
    for (size_t r = 0; r < rows; r++)
        memcpy(c.at + r * c.ld, padded + r * PANEL, cols * sizeof *padded);
}

// All rows of a times one panel.
INLINE column(size_t m, size_t cols, size_t depth, const float *a, size_t row, size_t col,
              const float *panel, MatOut c) {
    for (size_t i = 0; i < m; i += ROWS) {
        size_t rows = m - i < ROWS ? m - i : ROWS;
        MatOut to = mat_out(c.at + i * c.ld, c.ld);
        if (rows == ROWS && cols == PANEL)
            tile4(depth, a + i * row, row, col, panel, to);
        else
            edge(rows, cols, depth, a + i * row, row, col, panel, to);
    }
}

MULTIVERSION_BODY repro_gemm_body(size_t m, size_t n, size_t k, GemmView a, GemmView b, MatOut c) {
    float panel[DEPTH * PANEL];
    for (size_t from = 0; from < k; from += DEPTH) {
        size_t depth = k - from < DEPTH ? k - from : DEPTH;
        for (size_t j = 0; j < n; j += PANEL) {
            size_t       cols = n - j < PANEL ? n - j : PANEL;
            const float *at = a.at + from * a.col;
            MatOut       to = mat_out(c.at + j, c.ld);
            pack((GemmView){b.at + from * b.row + j * b.col, b.row, b.col}, depth, cols, panel);
            if (a.col == 1)
                column(m, cols, depth, at, a.row, 1, panel, to);
            else
                column(m, cols, depth, at, 1, a.col, panel, to);
        }
    }
}
MULTIVERSION(extern, repro_gemm, (size_t m, size_t n, size_t k, GemmView a, GemmView b, MatOut c),
             (m, n, k, a, b, c))

// Eight vectors of sums stay in registers while the inputs stream past.

INLINE by_eight(size_t out, size_t in, const float *x, const float *w, float *y) {
    Lanes *to = (Lanes *)y;
    Lanes  s0 = to[0], s1 = to[1], s2 = to[2], s3 = to[3];
    Lanes  s4 = to[4], s5 = to[5], s6 = to[6], s7 = to[7];
    for (size_t i = 0; i < in; i++) {
        const Lanes *at = (const Lanes *)(w + i * out);
        s0 += x[i] * at[0];
        s1 += x[i] * at[1];
        s2 += x[i] * at[2];
        s3 += x[i] * at[3];
        s4 += x[i] * at[4];
        s5 += x[i] * at[5];
        s6 += x[i] * at[6];
        s7 += x[i] * at[7];
    }
    to[0] = s0, to[1] = s1, to[2] = s2, to[3] = s3;
    to[4] = s4, to[5] = s5, to[6] = s6, to[7] = s7;
}

INLINE by_two(size_t out, size_t in, const float *x, const float *w, float *y) {
    Lanes *to = (Lanes *)y, s0 = to[0], s1 = to[1];
    for (size_t i = 0; i < in; i++) {
        const Lanes *at = (const Lanes *)(w + i * out);
        s0 += x[i] * at[0];
        s1 += x[i] * at[1];
    }
    to[0] = s0, to[1] = s1;
}

MULTIVERSION_BODY repro_gemv_body(size_t out, size_t in, const float *x, const float *w, float *y) {
    size_t c = 0;
    for (; c + 8 * LANES <= out; c += 8 * LANES) by_eight(out, in, x, w + c, y + c);
    for (; c + 2 * LANES <= out; c += 2 * LANES) by_two(out, in, x, w + c, y + c);
    for (; c < out; c++) {
        float sum = y[c];
        for (size_t i = 0; i < in; i++) sum += x[i] * w[i * out + c];
        y[c] = sum;
    }
}
MULTIVERSION(extern, repro_gemv, (size_t out, size_t in, const float *x, const float *w, float *y),
             (out, in, x, w, y))
