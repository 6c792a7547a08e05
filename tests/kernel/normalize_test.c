#include "tests/kernel/arrays.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/ref/ref_norm.h"
#include "kernel/normalize.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

static const uint32_t counts[] = {1, 2, 3, 7};
static const bool     middle[TENSOR_MAX_RANK] = {false, true};

static float *room(size_t n) {
    float *x = malloc(n * sizeof *x + 1);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = NAN;
    return x;
}

static float *fresh(Rng *rng, size_t n, double size, double centre) {
    float *x = room(n);
    for (size_t i = 0; i < n; i++) x[i] = (float)(centre + (rng_unit64(rng) * 2 - 1) * size);
    return x;
}

static void check_same(const char *what, const Isa *isa, const float *got, const float *want,
                       size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double room_for = 1e-5 * fabs((double)want[i]) + 1e-6;
        if (isnan(got[i]) && isnan(want[i])) continue;
        if (got[i] != want[i] && !(fabs((double)got[i] - (double)want[i]) <= room_for))
            fail_msg("%s (%s): number %zu of %zu is %.9g, not %.9g", what, isa->name, i, n,
                     (double)got[i], (double)want[i]);
    }
}

static void run_parts(const Isa *isa, const Normalize *r, const NormalizeArgs *d, uint32_t count) {
    for (uint32_t p = 0; p < count; p++) isa->normalize(r, d, (Part){p, count, NULL});
}

static const size_t shapes[][3] = {
    {1, 1, 1},    {5, 2, 1},    {3, 7, 1},    {3, 8, 1},   {2, 9, 1},   {4, 31, 1},    {4, 128, 1},
    {1, 1000, 1}, {3, 1037, 1}, {1, 5003, 1}, {0, 4, 1},   {2, 0, 3},   {2, 3, 2},     {2, 5, 7},
    {3, 4, 8},    {1, 19, 16},  {2, 6, 33},   {1, 600, 9}, {2, 3, 100}, {1, 21, 1029},
};

static void check_softmax(const Isa *isa, NormalizeOp op, size_t rows, size_t n, size_t inner,
                          Rng *rng) {
    const size_t  total = rows * n * inner;
    const int64_t dims[] = {(int64_t)rows, (int64_t)n, (int64_t)inner};
    float        *x = fresh(rng, total, 20, 3), *want = room(total);
    double       *row = malloc(n * sizeof *row + 1);
    Tensor        tx = tensor_of(DT_F32, 3, dims, x), ty = tensor_of(DT_F32, 3, dims, want);
    ref_softmax(op == NORMALIZE_SOFTMAX ? REF_SOFTMAX : REF_LOG_SOFTMAX, middle, &tx, &ty, row);
    const Normalize r = normalize_axis(op, rows, n, inner, 0);
    assert_true(normalize_tasks(&r, isa) <= total);
    for (size_t k = 0; k < COUNT(counts); k++) {
        float *y = room(total);
        run_parts(isa, &r, &(NormalizeArgs){.x = x, .y = y}, counts[k]);
        check_same("softmax", isa, y, want, total);
        free(y);
    }
    run_parts(isa, &r, &(NormalizeArgs){.x = x, .y = x}, 1);
    check_same("softmax in place", isa, x, want, total);
    free(x), free(want), free(row);
}

static void softmax_is_the_reference(void **state) {
    (void)state;
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    Rng          rng = {1};
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(shapes); k++) {
            const size_t *d = shapes[k];
            check_softmax(isas[s], NORMALIZE_SOFTMAX, d[0], d[1], d[2], &rng);
            check_softmax(isas[s], NORMALIZE_LOG_SOFTMAX, d[0], d[1], d[2], &rng);
        }
}

static void masked_and_odd_rows_are_as_the_reference_has_them(void **state) {
    (void)state;
    enum { N = 11 };
    const float  fills[] = {-INFINITY, INFINITY, NAN, -1e30f, 3e38f, 0};
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(fills); k++)
            for (int all = 0; all < 2; all++) {
                float  x[N], want[N], y[N];
                double row[N];
                for (int i = 0; i < N; i++) x[i] = all || i % 3 == 1 ? fills[k] : (float)i;
                Tensor tx = ARRAY(DT_F32, x, 1, N), ty = ARRAY(DT_F32, want, 1, N);
                ref_softmax(REF_SOFTMAX, middle, &tx, &ty, row);
                Normalize r = normalize_axis(NORMALIZE_SOFTMAX, 1, N, 1, 0);
                isas[s]->normalize(&r, &(NormalizeArgs){.x = x, .y = y}, (Part){0, 1, NULL});
                check_same("odd row", isas[s], y, want, N);
            }
}

static const RefNormKind kinds[] = {
    [NORMALIZE_VARIANCE] = REF_NORM_VARIANCE,
    [NORMALIZE_DEVIATION] = REF_NORM_DEVIATION,
    [NORMALIZE_RMS] = REF_NORM_RMS,
    [NORMALIZE_L1] = REF_NORM_L1,
    [NORMALIZE_L2] = REF_NORM_L2,
};

// Index of the scale of element i of x.
static size_t scale_at(const Normalize *r, size_t i) {
    if (r->scale == NORMALIZE_SCALE_PER_ELEMENT) return i % r->n;
    return i / (r->n * r->inner) % r->groups * r->inner + i % r->inner;
}

static void check_norm(const Isa *isa, const Normalize *r, Rng *rng) {
    const size_t  total = r->rows * r->n * r->inner, sets = r->rows * r->inner;
    const size_t  n_scales = r->scale == NORMALIZE_SCALE_PER_ELEMENT ? r->n : r->groups * r->inner;
    const int64_t dims[] = {(int64_t)r->rows, (int64_t)r->n, (int64_t)r->inner};
    float *x = fresh(rng, total, 2, 5), *want = room(total), *scale = fresh(rng, n_scales, 1, 0);
    float *bias = fresh(rng, n_scales, 1, 0), *mean = room(sets), *inverse = room(sets);
    float *want_mean = room(sets), *want_inverse = room(sets);
    Tensor tx = tensor_of(DT_F32, 3, dims, x), ty = tensor_of(DT_F32, 3, dims, want);
    Tensor tm = ARRAY(DT_F32, want_mean, (int64_t)sets),
           ti = ARRAY(DT_F32, want_inverse, (int64_t)sets);
    RefNorm p = {kinds[r->op], {false, true}, (double)r->epsilon, &tm, &ti};
    ref_norm(&p, &tx, &ty);
    for (size_t i = 0; i < total; i++) {
        const size_t at = scale_at(r, i);
        want[i] = want[i] * scale[at] + bias[at];
    }
    for (size_t k = 0; k < COUNT(counts); k++) {
        float        *y = room(total);
        NormalizeArgs d = {
            .x = x, .scale = scale, .bias = bias, .y = y, .mean = mean, .inverse = inverse};
        run_parts(isa, r, &d, counts[k]);
        check_same("norm", isa, y, want, total);
        check_same("mean", isa, mean, want_mean, sets);
        check_same("inverse", isa, inverse, want_inverse, sets);
        free(y);
    }
    free(x), free(want), free(scale), free(bias), free(mean), free(inverse);
    free(want_mean), free(want_inverse);
}

static void norms_along_an_axis_are_the_reference(void **state) {
    (void)state;
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    Rng          rng = {2};
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(shapes); k++)
            for (NormalizeOp op = NORMALIZE_VARIANCE; op <= NORMALIZE_L2; op++) {
                const size_t   *d = shapes[k];
                const Normalize r = normalize_axis(op, d[0], d[1], d[2], 1e-3f);
                if (d[1] > 0) check_norm(isas[s], &r, &rng);
            }
}

static void channels_are_normalised(void **state) {
    (void)state;
    const size_t images[][3] = {{1, 4, 9},   {2, 6, 35}, {2, 32, 5},
                                {1, 64, 49}, {3, 1, 1},  {1, 2, 3000}};
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    Rng          rng = {3};
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(images); k++) {
            const size_t *d = images[k];
            Normalize     r = normalize_instance(d[0], d[1], d[2], 1e-5f);
            check_norm(isas[s], &r, &rng);
        }
}

// Fused residual addition, with and without the sum as an output.
static void check_skip(const Isa *isa, size_t rows, size_t n, bool keep, Rng *rng) {
    const size_t total = rows * n;
    float       *x = fresh(rng, total, 1, 0), *add = fresh(rng, total, 1, 0);
    float       *add_bias = fresh(rng, n, 1, 0), *sum = room(total), *got = room(total);
    float       *want = room(total), *y = room(total);
    for (size_t i = 0; i < total; i++) sum[i] = x[i] + add[i] + add_bias[i % n];
    const int64_t dims[] = {(int64_t)rows, (int64_t)n};
    Tensor        tx = tensor_of(DT_F32, 2, dims, sum), ty = tensor_of(DT_F32, 2, dims, want);
    RefNorm       p = {REF_NORM_VARIANCE, {false, true}, 1e-5, NULL, NULL};
    ref_norm(&p, &tx, &ty);
    const Normalize r = normalize_axis(NORMALIZE_VARIANCE, rows, n, 1, 1e-5f);
    NormalizeArgs d = {.x = x, .add = add, .add_bias = add_bias, .y = y, .sum = keep ? got : NULL};
    run_parts(isa, &r, &d, 3);
    check_same("skip norm", isa, y, want, total);
    if (keep) check_same("sum", isa, got, sum, total);
    d.y = x;
    run_parts(isa, &r, &d, 2);
    check_same("skip norm in place", isa, x, want, total);
    free(x), free(add), free(add_bias), free(sum), free(got), free(want), free(y);
}

static void a_residual_is_added_before_the_norm(void **state) {
    (void)state;
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    Rng          rng = {4};
    for (size_t s = 0; s < n_isas; s++)
        for (size_t n = 3; n < 800; n = n * 3 + 2) {
            check_skip(isas[s], 5, n, true, &rng);
            check_skip(isas[s], 5, n, false, &rng);
        }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_is_the_reference),
        cmocka_unit_test(masked_and_odd_rows_are_as_the_reference_has_them),
        cmocka_unit_test(norms_along_an_axis_are_the_reference),
        cmocka_unit_test(channels_are_normalised),
        cmocka_unit_test(a_residual_is_added_before_the_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
