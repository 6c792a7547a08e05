#include "kernel/gemm.h"
#include "kernel/vec_gemm.h"

typedef float V8 __attribute__((vector_size(32)));
typedef float V8Any __attribute__((vector_size(32), aligned(4), may_alias));

enum { SIDE = 8 };

#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

// to[j][i] = from[i][j] * scale, 8 x 8.
VEC_INLINE void turn_square(const float *from, size_t from_row, float *to, size_t to_row,
                            V8 scale) {
    V8 x[SIDE], y[SIDE], z[SIDE];
    for (uint32_t i = 0; i < SIDE; i++) x[i] = *(const V8Any *)(from + i * from_row) * scale;
    for (uint32_t i = 0; i < SIDE; i += 2) {
        y[i] = SHUFFLE(x[i], x[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        y[i + 1] = SHUFFLE(x[i], x[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (uint32_t h = 0; h < SIDE; h += 4)
        for (uint32_t i = 0; i < 2; i++) {
            z[h + 2 * i] = SHUFFLE(y[h + i], y[h + i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            z[h + 2 * i + 1] = SHUFFLE(y[h + i], y[h + i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (uint32_t i = 0; i < 4; i++) {
        V8 low = SHUFFLE(z[i], z[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        V8 high = SHUFFLE(z[i], z[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        *(V8Any *)(to + i * to_row) = low;
        *(V8Any *)(to + (i + 4) * to_row) = high;
    }
}

static void turn_plain(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                       float scale, float *to, size_t to_row) {
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < rows; i++) to[j * to_row + i] = from[i * from_row + j] * scale;
}

void VEC(gemm_turn)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                    float scale, float *to, size_t to_row) {
    V8       by = scale - (V8){0};
    uint32_t whole_rows = rows / SIDE * SIDE, whole = columns / SIDE * SIDE;
    for (uint32_t i = 0; i < whole_rows; i += SIDE)
        for (uint32_t j = 0; j < whole; j += SIDE)
            turn_square(from + i * from_row + j, from_row, to + j * to_row + i, to_row, by);
    turn_plain(whole_rows, columns - whole, from + whole, from_row, scale, to + whole * to_row,
               to_row);
    turn_plain(rows - whole_rows, columns, from + whole_rows * from_row, from_row, scale,
               to + whole_rows, to_row);
}

void VEC(gemm_copy)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                    float scale, float *to, size_t to_row) {
    const Vf by = vf_set(scale);
    for (uint32_t i = 0; i < rows; i++) {
        const float *x = from + i * from_row;
        float       *y = to + i * to_row;
        uint32_t     j = 0;
        for (; j + VEC_LANES <= columns; j += VEC_LANES) vf_store(y + j, vf_load(x + j) * by);
        for (; j < columns; j++) y[j] = x[j] * scale;
    }
}

// Columns beyond n are 0.
static void clear(uint32_t k, uint32_t from, float *panel) {
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = from; j < VEC_LANES; j++) panel[(size_t)i * VEC_LANES + j] = 0;
}

// Four panels at a time, so that whole lines of b are used when they come in.
static void copy_four(uint32_t k, const float *b, size_t row, float scale, float *to,
                      size_t panel) {
    const Vf by = vf_set(scale);
    for (uint32_t i = 0; i < k; i++, b += row, to += VEC_LANES)
        for (uint32_t v = 0; v < 4; v++) vf_store(to + v * panel, vf_load(b + v * VEC_LANES) * by);
}

void VEC(gemm_panels)(uint32_t n, uint32_t k, const float *b, size_t row, bool turned, float scale,
                      float *to) {
    const size_t panel = (size_t)k * VEC_LANES;
    uint32_t     at = 0;
    for (; !turned && at + 4 * VEC_LANES <= n; at += 4 * VEC_LANES, to += 4 * panel)
        copy_four(k, b + at, row, scale, to, panel);
    for (; at < n; at += VEC_LANES, to += panel) {
        uint32_t some = n - at < VEC_LANES ? n - at : VEC_LANES;
        if (turned)
            VEC(gemm_turn)(some, k, b + at * row, row, scale, to, VEC_LANES);
        else
            VEC(gemm_copy)(k, some, b + at, row, scale, to, VEC_LANES);
        if (some < VEC_LANES) clear(k, some, to);
    }
}
