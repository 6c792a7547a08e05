// Transposes a VEC_LANES x VEC_LANES square of floats in registers.
#pragma once

#include "kernel/vec/vec.h"

// The same shuffle of four floats in each 128-bit block; indices below VEC_L select from a, others
// from b.
#define VEC_L VEC_LANES
#if VEC_LANES == 16
#define VEC_PICK4(a, b, i, j, k, l)                                                                \
    __builtin_shufflevector(a, b, i, j, k, l, (i) + 4, (j) + 4, (k) + 4, (l) + 4, (i) + 8,         \
                            (j) + 8, (k) + 8, (l) + 8, (i) + 12, (j) + 12, (k) + 12, (l) + 12)
#define VEC_BLOCKS(a, b, i, j)                                                                     \
    __builtin_shufflevector(a, b, 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3, 4 * (j),         \
                            4 * (j) + 1, 4 * (j) + 2, 4 * (j) + 3, 4 * (i) + 16, 4 * (i) + 17,     \
                            4 * (i) + 18, 4 * (i) + 19, 4 * (j) + 16, 4 * (j) + 17, 4 * (j) + 18,  \
                            4 * (j) + 19)
#else
#define VEC_PICK4(a, b, i, j, k, l)                                                                \
    __builtin_shufflevector(a, b, i, j, k, l, (i) + 4, (j) + 4, (k) + 4, (l) + 4)
#endif

// Transposes 4 rows: 128-bit block q of r[k] then holds column 4 * q + k of the four rows.
VEC_INLINE void vec_transpose4(Vf r[4]) {
    Vf a = VEC_PICK4(r[0], r[1], 0, VEC_L, 1, VEC_L + 1);
    Vf b = VEC_PICK4(r[0], r[1], 2, VEC_L + 2, 3, VEC_L + 3);
    Vf c = VEC_PICK4(r[2], r[3], 0, VEC_L, 1, VEC_L + 1);
    Vf d = VEC_PICK4(r[2], r[3], 2, VEC_L + 2, 3, VEC_L + 3);
    r[0] = VEC_PICK4(a, c, 0, 1, VEC_L, VEC_L + 1);
    r[1] = VEC_PICK4(a, c, 2, 3, VEC_L + 2, VEC_L + 3);
    r[2] = VEC_PICK4(b, d, 0, 1, VEC_L, VEC_L + 1);
    r[3] = VEC_PICK4(b, d, 2, 3, VEC_L + 2, VEC_L + 3);
}

// r[i][j] becomes r[j][i]. Callers index r with constants only, so that it stays in registers.
VEC_INLINE void vec_transpose(Vf r[VEC_LANES]) {
#pragma GCC     unroll 4
    for (int g = 0; g < VEC_LANES; g += 4) vec_transpose4(r + g);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
#if VEC_LANES == 16
        Vf a = VEC_BLOCKS(r[k], r[k + 4], 0, 2), b = VEC_BLOCKS(r[k], r[k + 4], 1, 3);
        Vf c = VEC_BLOCKS(r[k + 8], r[k + 12], 0, 2), d = VEC_BLOCKS(r[k + 8], r[k + 12], 1, 3);
        r[k] = VEC_BLOCKS(a, c, 0, 2);
        r[k + 4] = VEC_BLOCKS(b, d, 0, 2);
        r[k + 8] = VEC_BLOCKS(a, c, 1, 3);
        r[k + 12] = VEC_BLOCKS(b, d, 1, 3);
#else
        Vf a = r[k], b = r[k + 4];
        r[k] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        r[k + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
#endif
    }
}
