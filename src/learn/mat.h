// Mat: products of matrices by CBLAS, row by row in memory, a row every `ld` floats.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct Mat {
    const float *at;
    size_t       ld;
} Mat;

typedef struct MatOut {
    float *at;
    size_t ld;
} MatOut;

// c [m][n] = keep c + a [m][k] b [k][n]; keep is 0 (what c held is not read) or 1. In _tn a is
// stored [k][m], in _nt b is stored [n][k].
void mat_mul(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c);
void mat_mul_tn(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c);
void mat_mul_nt(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c);

void mat_set_rows(size_t rows, size_t cols, const float *row, MatOut y);  // each a copy of `row`
void mat_add_rows(size_t rows, size_t cols, Mat x, float *sum);           // sum [cols] += rows of x
void mat_copy(size_t rows, size_t cols, Mat x, MatOut y);

static inline Mat    mat(const float *at, size_t ld) { return (Mat){at, ld}; }
static inline MatOut mat_out(float *at, size_t ld) { return (MatOut){at, ld}; }
