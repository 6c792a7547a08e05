// Eight vectors of sums in registers while the inputs stream past.
#include "learn/plain.h"
#include "learn/wide.h"

enum { LANES = 8 };
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline)) void

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

WIDE_LINES plain_row_lines(size_t out, size_t in, const float *x, const float *w, float *y) {
    size_t c = 0;
    for (; c + 8 * LANES <= out; c += 8 * LANES) by_eight(out, in, x, w + c, y + c);
    for (; c + 2 * LANES <= out; c += 2 * LANES) by_two(out, in, x, w + c, y + c);
    for (; c < out; c++) {
        float sum = y[c];
        for (size_t i = 0; i < in; i++) sum += x[i] * w[i * out + c];
        y[c] = sum;
    }
}
WIDE(extern, plain_row, (size_t out, size_t in, const float *x, const float *w, float *y),
     (out, in, x, w, y))
