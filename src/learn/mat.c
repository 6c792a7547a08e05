#include "learn/mat.h"

#include <cblas.h>
#include <string.h>

#include "learn/repro_gemm.h"

static _Thread_local MatBackend thread_backend = MAT_BLAS;

MatBackend mat_set_backend(MatBackend backend) {
    MatBackend was = thread_backend;
    thread_backend = backend;
    return was;
}

static void reproducible(size_t m, size_t n, size_t k, GemmView a, GemmView b, float keep,
                         MatOut c) {
    if (keep == 0)
        for (size_t i = 0; i < m; i++) memset(c.at + i * c.ld, 0, n * sizeof *c.at);
    repro_gemm(m, n, k, a, b, c);
}

static void blas(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, size_t m, size_t n, size_t k, Mat a, Mat b,
                 float keep, MatOut c) {
    if (m == 0 || n == 0) return;
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1.0f, a.at,
                (blasint)a.ld, b.at, (blasint)b.ld, keep, c.at, (blasint)c.ld);
}

static GemmView view(Mat x) { return (GemmView){x.at, x.ld, 1}; }
static GemmView transposed(Mat x) { return (GemmView){x.at, 1, x.ld}; }

void mat_mul(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c) {
    if (thread_backend == MAT_REPRODUCIBLE)
        reproducible(m, n, k, view(a), view(b), keep, c);
    else
        blas(CblasNoTrans, CblasNoTrans, m, n, k, a, b, keep, c);
}

void mat_mul_tn(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c) {
    if (thread_backend == MAT_REPRODUCIBLE)
        reproducible(m, n, k, transposed(a), view(b), keep, c);
    else
        blas(CblasTrans, CblasNoTrans, m, n, k, a, b, keep, c);
}

void mat_mul_nt(size_t m, size_t n, size_t k, Mat a, Mat b, float keep, MatOut c) {
    if (thread_backend == MAT_REPRODUCIBLE)
        reproducible(m, n, k, view(a), transposed(b), keep, c);
    else
        blas(CblasNoTrans, CblasTrans, m, n, k, a, b, keep, c);
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

void mat_transpose(size_t rows, size_t cols, Mat x, MatOut y) {
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < cols; i++) y.at[i * y.ld + r] = x.at[r * x.ld + i];
}
