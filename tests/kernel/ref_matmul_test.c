// Products against one sum per element, for odd sizes, batches, transposes and zero points.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/tensor.h"
#include "base/rng.h"
#include "kernel/ref/ref_matmul.h"
#include "tests/runner.h"

static Tensor numbers(Arena *a, DType t, int32_t rank, const int64_t *dims, Rng *r) {
    Tensor x = tensor_of(t, rank, dims, NULL);
    x.data = arena_alloc(a, (size_t)tensor_count(&x), dtype_size(t), 64);
    for (int64_t i = 0; i < tensor_count(&x); i++) tensor_set(&x, i, (double)rng_below(r, 50));
    return x;
}

// a [2, 1, m, k] times b [3, k, n] is y [2, 3, m, n].
static void product(DType t, DType result, int64_t m, int64_t k, int64_t n, bool ta, bool tb,
                    bool zeros) {
    Arena a;
    Rng   r = {3};
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    Tensor    left = numbers(&a, t, 4, (int64_t[]){2, 1, ta ? k : m, ta ? m : k}, &r);
    Tensor    right = numbers(&a, t, 3, (int64_t[]){3, tb ? n : k, tb ? k : n}, &r);
    Tensor    y = numbers(&a, result, 4, (int64_t[]){2, 3, m, n}, &r);
    Tensor    az = numbers(&a, t, 2, (int64_t[]){m, 1}, &r);
    Tensor    bz = numbers(&a, t, 3, (int64_t[]){3, 1, n}, &r);
    RefMatMul p = {ta, tb, zeros ? &az : NULL, zeros ? &bz : NULL};
    assert_int_equal(ref_matmul(&p, &left, &right, &y, &a), ERR_OK);
    for (int64_t at = 0; at < tensor_count(&y); at++) {
        int64_t j = at % n, i = at / n % m, s = at / n / m, sa = s / 3 * m * k, sb = s % 3 * k * n;
        double  want = 0;
        for (int64_t x = 0; x < k; x++) {
            double u = tensor_get_f64(&left, sa + (ta ? x * m + i : i * k + x));
            double v = tensor_get_f64(&right, sb + (tb ? j * k + x : x * n + j));
            if (zeros) u -= tensor_get_f64(&az, i);
            if (zeros) v -= tensor_get_f64(&bz, s % 3 * n + j);
            want += u * v;
        }
        assert_true(tensor_get_f64(&y, at) == want);
    }
    arena_finish(&a);
}

static void shapes_and_types(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 17}, {2, 7, 33}, {5, 1, 16}, {1, 9, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int trans = 0; trans < 4; trans++) {
            int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
            bool    ta = (trans & 1) != 0, tb = (trans & 2) != 0;
            product(DT_F32, DT_F32, m, k, n, ta, tb, false);
            product(DT_F64, DT_F64, m, k, n, ta, tb, false);
            product(DT_I32, DT_I32, m, k, n, ta, tb, false);
            product(DT_U64, DT_U64, m, k, n, ta, tb, false);
            product(DT_U8, DT_I32, m, k, n, ta, tb, true);
        }
}

static void integers_wrap(void **state) {
    (void)state;
    Arena     a;
    int64_t   u[2] = {INT64_MAX, 3}, v[2] = {2, 5}, w[1] = {0};
    Tensor    tu = tensor_of(DT_I64, 2, (int64_t[]){1, 2}, u);
    Tensor    tv = tensor_of(DT_I64, 2, (int64_t[]){2, 1}, v);
    Tensor    tw = tensor_of(DT_I64, 2, (int64_t[]){1, 1}, w);
    RefMatMul p = {0};
    assert_int_equal(arena_init(&a, 1 << 16), ERR_OK);
    assert_int_equal(ref_matmul(&p, &tu, &tv, &tw, &a), ERR_OK);
    assert_true(w[0] == 13);
    arena_finish(&a);
}

static void empty_inner(void **state) {
    (void)state;
    Arena     a;
    float     y[2] = {9, 9};
    Tensor    tu = tensor_of(DT_F32, 2, (int64_t[]){1, 0}, y);
    Tensor    tv = tensor_of(DT_F32, 2, (int64_t[]){0, 2}, y);
    Tensor    ty = tensor_of(DT_F32, 2, (int64_t[]){1, 2}, y);
    RefMatMul p = {0};
    assert_int_equal(arena_init(&a, 1 << 16), ERR_OK);
    assert_int_equal(ref_matmul(&p, &tu, &tv, &ty, &a), ERR_OK);
    assert_true(y[0] == 0 && y[1] == 0);
    arena_finish(&a);
}

static void gemm_adds(void **state) {
    (void)state;
    double ab[4] = {1, 2, 3, 4};
    float  c[2] = {10, 20}, y[4];
    Tensor tab = tensor_of(DT_F64, 2, (int64_t[]){2, 2}, ab);
    Tensor tc = tensor_of(DT_F32, 2, (int64_t[]){2, 1}, c);
    Tensor ty = tensor_of(DT_F32, 2, (int64_t[]){2, 2}, y);
    ref_gemm_add(2, &tab, 0.5, &tc, &ty);
    assert_true(y[0] == 7 && y[1] == 9 && y[2] == 16 && y[3] == 18);
    ref_gemm_add(1, &tab, 0.5, NULL, &ty);
    assert_true(y[3] == 4);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_types),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(empty_inner),
        cmocka_unit_test(gemm_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
