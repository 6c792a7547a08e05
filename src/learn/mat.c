#include "learn/mat.h"

#include <cblas.h>
#include <string.h>

static void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, size_t m, size_t n, size_t k, Mat a, Mat b,
                 float keep, MatOut c) {
    if (m == 0 || n == 0) return;
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1.0f, a.at,
                (blasint)a.ld, b.at, (blasint)b.ld, keep, c.at, (blasint)c.ld);
}

void mat_mul(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c) {
    gemm(CblasNoTrans, CblasNoTrans, m, n, k, a, b, keep, c);
}

void mat_mul_tn(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c) {
    gemm(CblasTrans, CblasNoTrans, m, n, k, a, b, keep, c);
}

void mat_mul_nt(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c) {
    gemm(CblasNoTrans, CblasTrans, m, n, k, a, b, keep, c);
}

void mat_set_rows(size_t rows, size_t cols, const float *row, MatOut y) {
    for (size_t r = 0; r < rows; r++) memcpy(y.at + r * y.ld, row, cols * sizeof *row);
}

void mat_add_rows(size_t rows, size_t cols, Mat x, float *sum) {
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < cols; i++) sum[i] += x.at[r * x.ld + i];
}

void mat_copy(size_t rows, size_t cols, Mat x, MatOut y) {
    for (size_t r = 0; r < rows; r++) memcpy(y.at + r * y.ld, x.at + r * x.ld, cols * sizeof *y.at);
}
