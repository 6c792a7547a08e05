// Products of both backends against three loops; the reproducible one bit by bit.
#include "tests/learn/gradient.h"

#include <stdlib.h>

#include "learn/repro_gemm.h"
#include "tests/runner.h"

enum { MOST = 300 * 70 };

typedef struct Sizes {
    size_t m, n, k;
} Sizes;

static const Sizes sizes[] = {{1, 1, 1},    {1, 64, 3}, {4, 16, 5},   {5, 17, 2},   {3, 8, 300},
                              {16, 70, 64}, {7, 3, 19}, {64, 33, 65}, {2, 15, 257}, {12, 48, 256},
                              {0, 4, 4},    {4, 4, 0},  {70, 70, 70}, {9, 130, 9}};

static float a[MOST], b[MOST], c[MOST], want[MOST], start[MOST];

static float term(const float *x, size_t ld, bool turned, size_t i, size_t j) {
    return turned ? x[j * ld + i] : x[i * ld + j];
}

// In floats, from the first term to the last.
static void slow(Sizes s, bool ta, size_t lda, bool tb, size_t ldb, bool keep, size_t ldc) {
    for (size_t i = 0; i < s.m; i++)
        for (size_t j = 0; j < s.n; j++) {
            volatile float sum = keep ? start[i * ldc + j] : 0;
            for (size_t k = 0; k < s.k; k++) {
                volatile float product = term(a, lda, ta, i, k) * term(b, ldb, tb, k, j);
                sum += product;
            }
            want[i * ldc + j] = sum;
        }
}

static void check(Sizes s, bool ta, bool tb, bool keep, size_t pad, MatBackend way) {
    size_t lda = (ta ? s.m : s.k) + pad, ldb = (tb ? s.k : s.n) + pad, ldc = s.n + pad;
    lda += lda == 0, ldb += ldb == 0;
    memcpy(c, start, sizeof c);
    memcpy(want, start, sizeof want);
    slow(s, ta, lda, tb, ldb, keep, ldc);
    MatBackend was = mat_set_backend(way);
    (ta   ? mat_mul_tn
     : tb ? mat_mul_nt
          : mat_mul)(s.m, s.n, s.k, mat(a, lda), mat(b, ldb), keep ? 1 : 0, mat_out(c, ldc));
    mat_set_backend(was);
    if (way == MAT_REPRODUCIBLE) {
        assert_memory_equal(c, want, sizeof c);
    } else {
        for (size_t i = 0; i < MOST; i++) assert_float_equal(c[i], want[i], 1e-4);
    }
}

static void test_products(void **state) {
    (void)state;
    Rng rng = {1};
    gradient_fill(&rng, a, MOST, 1);
    gradient_fill(&rng, b, MOST, 1);
    gradient_fill(&rng, start, MOST, 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint32_t kind = 0; kind < 24; kind++)
            check(sizes[i], kind % 3 == 1, kind % 3 == 2, kind / 3 % 2, kind / 6 % 2 * 5,
                  kind / 12 ? MAT_REPRODUCIBLE : MAT_BLAS);
}

static void test_row(void **state) {
    (void)state;
    Rng rng = {2};
    gradient_fill(&rng, a, MOST, 1);
    gradient_fill(&rng, b, MOST, 1);
    gradient_fill(&rng, start, MOST, 1);
    for (size_t out = 1; out < 200; out += 3)
        for (size_t in = 0; in < 90; in += 11) {
            memcpy(c, start, sizeof c);
            memcpy(want, start, sizeof want);
            slow((Sizes){1, out, in}, false, in, false, out, true, out);
            repro_gemv(out, in, a, b, c);
            assert_memory_equal(c, want, sizeof c);
        }
}

static void test_rest(void **state) {
    (void)state;
    const float x[] = {1, 2, 3, 0, 4, 5, 6, 0};
    float       sum[3] = {10, 20, 30}, y[6], rows[6];
    mat_add_rows(2, 3, mat(x, 4), sum);
    assert_true(sum[0] == 15 && sum[1] == 27 && sum[2] == 39);
    mat_transpose(2, 3, mat(x, 4), mat_out(y, 2));
    assert_memory_equal(y, ((float[]){1, 4, 2, 5, 3, 6}), sizeof y);
    mat_copy(2, 3, mat(x, 4), mat_out(y, 3));
    assert_memory_equal(y, ((float[]){1, 2, 3, 4, 5, 6}), sizeof y);
    mat_set_rows(3, 2, x, mat_out(rows, 2));
    assert_memory_equal(rows, ((float[]){1, 2, 1, 2, 1, 2}), sizeof rows);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_row),
                                       cmocka_unit_test(test_rest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
