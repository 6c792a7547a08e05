// Tiles of rows by columns are summed in registers while the inputs stream past. How large a tile
// is does not show in the result: a sum is never split.
#include "learn/plain.h"

#include <string.h>

#include "learn/wide.h"

enum { LANES = 8 };
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

// rows and vecs are constants where this is inlined, so that `sum` lives in registers.
INLINE void tile(size_t rows, size_t vecs, size_t in, Mat x, const float *w, size_t ldw,
                 const float *start, MatOut y) {
    Lanes sum[8];
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < vecs; v++)
            memcpy(&sum[r * vecs + v], (start ? start : y.at + r * y.ld) + v * LANES,
                   sizeof(Lanes));
    for (size_t i = 0; i < in; i++)
        for (size_t v = 0; v < vecs; v++) {
            Lanes col;
            memcpy(&col, w + i * ldw + v * LANES, sizeof col);
            for (size_t r = 0; r < rows; r++) sum[r * vecs + v] += x.at[r * x.ld + i] * col;
        }
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < vecs; v++)
            memcpy(y.at + r * y.ld + v * LANES, &sum[r * vecs + v], sizeof(Lanes));
}

// Rows at once, by as many of the columns from c on as tiles of `vecs` vectors cover; where they
// end.
INLINE size_t sweep(size_t rows, size_t vecs, size_t c, size_t out, size_t in, Mat x,
                    const float *w, const float *start, MatOut y) {
    for (; c + vecs * LANES <= out; c += vecs * LANES)
        tile(rows, vecs, in, x, w + c, out, start ? start + c : NULL, mat_out(y.at + c, y.ld));
    return c;
}

// The last columns, which fill no vector: padded copies of them, for some inputs at a time.
INLINE void edge(size_t rows, size_t cols, size_t in, Mat x, const float *w, size_t ldw,
                 const float *start, MatOut y) {
    enum { CHUNK = 128 };
    float padded[CHUNK * LANES] = {0}, sum[4 * LANES] = {0};
    for (size_t r = 0; r < rows; r++) {
        if (start != NULL) memcpy(y.at + r * y.ld, start, cols * sizeof(float));
    }
    for (size_t from = 0; from < in; from += CHUNK) {
        size_t n = in - from < CHUNK ? in - from : CHUNK;
        for (size_t i = 0; i < n; i++)
            memcpy(padded + i * LANES, w + (from + i) * ldw, cols * sizeof(float));
        for (size_t r = 0; r < rows; r += 4) {
            size_t some = rows - r < 4 ? rows - r : 4;
            mat_copy(some, cols, mat(y.at + r * y.ld, y.ld), mat_out(sum, LANES));
            Mat at = mat(x.at + r * x.ld + from, x.ld);
            if (some == 4)
                tile(4, 1, n, at, padded, LANES, NULL, mat_out(sum, LANES));
            else
                for (size_t k = 0; k < some; k++)
                    tile(1, 1, n, mat(at.at + k * at.ld, at.ld), padded, LANES, NULL,
                         mat_out(sum + k * LANES, LANES));
            mat_copy(some, cols, mat(sum, LANES), mat_out(y.at + r * y.ld, y.ld));
        }
    }
}

WIDE_LINES plain_mul_lines(size_t rows, size_t out, size_t in, Mat x, const float *w,
                           const float *start, MatOut y) {
    size_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        Mat    at = mat(x.at + r * x.ld, x.ld);
        MatOut to = mat_out(y.at + r * y.ld, y.ld);
        size_t c = sweep(4, 2, 0, out, in, at, w, start, to);
        sweep(4, 1, c, out, in, at, w, start, to);
    }
    for (; r < rows; r++) {
        Mat    at = mat(x.at + r * x.ld, x.ld);
        MatOut to = mat_out(y.at + r * y.ld, y.ld);
        size_t c = sweep(1, 8, 0, out, in, at, w, start, to);
        c = sweep(1, 4, c, out, in, at, w, start, to);
        sweep(1, 1, c, out, in, at, w, start, to);
    }
    size_t c = out / LANES * LANES;
    if (c < out)
        edge(rows, out - c, in, x, w + c, out, start ? start + c : NULL, mat_out(y.at + c, y.ld));
}
WIDE(extern, plain_mul,
     (size_t rows, size_t out, size_t in, Mat x, const float *w, const float *start, MatOut y),
     (rows, out, in, x, w, start, y))
