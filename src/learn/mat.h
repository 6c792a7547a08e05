// Mat: products of row-major matrices with leading dimension `ld`.
//
// Two backends. BLAS is the fastest on one core, but its rounding depends on the machine, and
// serial OpenBLAS allows one calling thread at a time. REPRODUCIBLE adds in a fixed order: the same
// bits on every machine, in any number of threads.
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

static inline Mat    mat(const float *at, size_t ld) { return (Mat){at, ld}; }
static inline MatOut mat_out(float *at, size_t ld) { return (MatOut){at, ld}; }

typedef enum MatBackend { MAT_BLAS, MAT_REPRODUCIBLE } MatBackend;

MatBackend
mat_set_backend(MatBackend backend);  // of this thread, initially BLAS; returns the previous one

// c [m][n] = keep c + a [m][k] b [k][n]; keep is 0 (c is not read) or 1. In _tn a is
// stored [k][m], in _nt b is stored [n][k].
void mat_mul(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c);
void mat_mul_tn(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c);
void mat_mul_nt(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c);

void mat_set_rows(size_t rows, size_t cols, const float *row, MatOut y);  // each a copy of `row`
void mat_add_rows(size_t rows, size_t cols, Mat x, float *sum);           // sum [cols] += rows of x
void mat_copy(size_t rows, size_t cols, Mat x, MatOut y);
void mat_transpose(size_t rows, size_t cols, Mat x, MatOut y);  // y [cols][rows]
