#include "kernel/gemm.h"
#include "kernel/vec_gemm.h"
#include "kernel/vec_transpose.h"

#define UNROLL _Pragma("GCC unroll 16")

// to[j][i] = from[i][j] * scale, for as many rows and columns as a vector has lanes.
VEC_INLINE void turn_square(const float *from, size_t from_row, float *to, size_t to_row,
                            Vf scale) {
    Vf x[VEC_LANES];
    UNROLL for (uint32_t i = 0; i < VEC_LANES; i++) x[i] = vf_load(from + i * from_row) * scale;
    vec_transpose(x);
    UNROLL for (uint32_t i = 0; i < VEC_LANES; i++) vf_store(to + i * to_row, x[i]);
}

static void turn_plain(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                       float scale, float *to, size_t to_row) {
    for (uint32_t j = 0; j < columns; j++)
        for (uint32_t i = 0; i < rows; i++) to[j * to_row + i] = from[i * from_row + j] * scale;
}

void VEC(gemm_turn)(uint32_t rows, uint32_t columns, const float *from, size_t from_row,
                    float scale, float *to, size_t to_row) {
    const Vf by = vf_set(scale);
    uint32_t whole_rows = rows / VEC_LANES * VEC_LANES, whole = columns / VEC_LANES * VEC_LANES;
    for (uint32_t i = 0; i < whole_rows; i += VEC_LANES)
        for (uint32_t j = 0; j < whole; j += VEC_LANES)
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
        for (uint32_t v = 0; v < 4; v++)
            vf_store(to + v * panel, vf_load(b + (size_t)v * VEC_LANES) * by);
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
