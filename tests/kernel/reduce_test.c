#include "tests/kernel/arrays.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "kernel/normalize.h"
#include "kernel/ref/ref_reduce.h"
#include "tests/kernel/isas.h"
#include "tests/runner.h"

static const RefReduce refs[REDUCE_OPS] = {
    [REDUCE_SUM] = REF_REDUCE_SUM,         [REDUCE_MEAN] = REF_REDUCE_MEAN,
    [REDUCE_MAX] = REF_REDUCE_MAX,         [REDUCE_MIN] = REF_REDUCE_MIN,
    [REDUCE_PROD] = REF_REDUCE_PROD,       [REDUCE_SUM_SQUARE] = REF_REDUCE_SUM_SQUARE,
    [REDUCE_L1] = REF_REDUCE_L1,           [REDUCE_L2] = REF_REDUCE_L2,
    [REDUCE_LOG_SUM] = REF_REDUCE_LOG_SUM, [REDUCE_LOG_SUM_EXP] = REF_REDUCE_LOG_SUM_EXP,
};

static float *room(size_t n) {
    float *x = malloc(n * sizeof *x + 1);
    assert_non_null(x);
    return x;
}

// Errors are relative to the terms, which are about 1.
static void check(const Reduce *f, const Isa *isa, const float *got, const float *want) {
    const double terms = f->op == REDUCE_SUM ? 1e-6 * (double)f->n : 1e-6;
    for (size_t i = 0; i < f->outer * f->inner; i++) {
        const double near = 1e-5 * fabs((double)want[i]) + terms;
        if (got[i] == want[i] || (isnan(got[i]) && isnan(want[i]))) continue;
        if (!(fabs((double)got[i] - (double)want[i]) <= near))
            fail_msg("reduce %d of [%zu][%zu][%zu] (%s): element %zu is %.9g, not %.9g", (int)f->op,
                     f->outer, f->n, f->inner, isa->name, i, (double)got[i], (double)want[i]);
    }
}

static void check_reduce(const Isa *isa, const Reduce *f, float *x) {
    const uint32_t counts[] = {1, 2, 3, 7};
    const size_t   kept = f->outer * f->inner;
    const int64_t  dims[] = {(int64_t)f->outer, (int64_t)f->n, (int64_t)f->inner};
    float         *want = room(kept);
    Tensor         tx = tensor_of(DT_F32, 3, dims, x);
    Tensor         ty = ARRAY(DT_F32, want, (int64_t)f->outer, (int64_t)f->inner);
    ref_reduce(refs[f->op], (const bool[TENSOR_MAX_RANK]){false, true}, &tx, &ty);
    for (size_t k = 0; k < COUNT(counts); k++) {
        float *y = room(kept);
        for (size_t i = 0; i < kept; i++) y[i] = 12345;
        for (uint32_t p = 0; p < counts[k]; p++) isa->reduce(f, x, y, (Part){p, counts[k], NULL});
        check(f, isa, y, want);
        free(y);
    }
    free(want);
}

static void reductions_match_the_reference(void **state) {
    (void)state;
    const size_t shapes[][3] = {
        {1, 1, 1},   {3, 2, 1},  {2, 7, 1},   {2, 8, 1},   {3, 33, 1},  {2, 300, 1},  {1, 5003, 1},
        {2, 0, 1},   {2, 0, 5},  {0, 3, 4},   {2, 1, 3},   {2, 9, 2},   {1, 700, 3},  {2, 49, 8},
        {3, 49, 16}, {2, 5, 17}, {1, 10, 63}, {1, 10, 64}, {2, 4, 131}, {1, 300, 70}, {1, 2, 1000},
    };
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    Rng          rng = {1};
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(shapes); k++)
            for (ReduceOp op = 0; op < REDUCE_OPS; op++) {
                const Reduce f = {op, shapes[k][0], shapes[k][1], shapes[k][2]};
                const size_t n = f.outer * f.n * f.inner;
                const double low = op == REDUCE_LOG_SUM ? 0 : op == REDUCE_PROD ? 0.9 : -1;
                float       *x = room(n);
                assert_true(reduce_tasks(&f, isas[s]) <= f.outer * f.inner);
                for (size_t i = 0; i < n; i++) x[i] = (float)(low + (1.1 - low) * rng_unit64(&rng));
                check_reduce(isas[s], &f, x);
                free(x);
            }
}

static void special_values_match_the_reference(void **state) {
    (void)state;
    const float  odd[] = {NAN, INFINITY, -INFINITY, 1e30f};
    const Isa   *isas[3];
    const size_t n_isas = isas_here(isas);
    float        x[45];
    for (size_t s = 0; s < n_isas; s++)
        for (size_t k = 0; k < COUNT(odd); k++)
            for (size_t at = 0; at < COUNT(x); at++)
                for (ReduceOp op = 0; op < REDUCE_OPS; op++) {
                    if (op == REDUCE_SUM_SQUARE || op == REDUCE_PROD || op == REDUCE_L2) continue;
                    for (size_t i = 0; i < COUNT(x); i++) x[i] = 0.5f + (float)i / 100;
                    x[at] = odd[k];
                    check_reduce(isas[s], &(Reduce){op, 1, COUNT(x), 1}, x);
                    check_reduce(isas[s], &(Reduce){op, 1, 5, 9}, x);
                }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_match_the_reference),
        cmocka_unit_test(special_values_match_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
