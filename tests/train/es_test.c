// Evolution strategies find a maximum from measurements alone, the same with any number of threads.
#include "train/es.h"
#include "tests/runner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { N = 12, FIXED = 3, STEPS = 120 };

// Highest where the moved parameters are 0.5; each run adds an offset, which mirrored pairs cancel.
static Err hill(void *self, const float *w, uint32_t run, Arena *a, double *fitness) {
    (void)self;
    (void)a;
    *fitness = 100 * sin(run);
    for (uint32_t i = 0; i < N; i++) *fitness -= pow((double)w[i] - 0.5, 2);
    return ERR_OK;
}

static void climb(uint32_t threads, Arena *a, FloatVec w) {
    EsParams  p = {.pairs = 8, .runs = 3, .sigma = 0.05f, .step = 0.1f, .momentum = 0.8f};
    EsProblem x = {.fitness = hill,
                   .params = w,
                   .part = float_vec_part(w, FIXED, N - FIXED),
                   .direction = float_vec_new(a, N - FIXED),
                   .threads = threads};
    double    mean;
    for (uint32_t i = 0; i < STEPS; i++)
        assert_int_equal(es_step(&p, &x, rng_fork((Rng){7}, i), a, &mean), ERR_OK);
}

static void test_climbs(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
    FloatVec one = float_vec_new(&a, N), two = float_vec_new(&a, N);
    climb(1, &a, one);
    climb(2, &a, two);
    for (uint32_t i = 0; i < FIXED; i++) assert_true(one.at[i] == 0);
    for (uint32_t i = FIXED; i < N; i++) assert_true(fabsf(one.at[i] - 0.5f) < 0.15f);
    assert_memory_equal(one.at, two.at, N * sizeof *one.at);
    arena_finish(&a);
}

static Err fails(void *self, const float *w, uint32_t run, Arena *a, double *fitness) {
    (void)self, (void)w, (void)a, (void)fitness;
    return run == 1 ? err_set(ERR_LIMIT, "no more") : ERR_OK;
}

static void test_a_run_that_fails_ends_the_step(void **state) {
    (void)state;
    EsParams p = {.pairs = 2, .runs = 2, .sigma = 0.05f, .step = 0.1f};
    Arena    a;
    double   mean;
    assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
    FloatVec  w = float_vec_new(&a, N);
    EsProblem x = {
        .fitness = fails, .params = w, .part = w, .direction = float_vec_new(&a, N), .threads = 1};
    assert_int_equal(es_step(&p, &x, (Rng){1}, &a, &mean), ERR_LIMIT);
    assert_true(float_vec_norm(w) == 0);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_climbs),
        cmocka_unit_test(test_a_run_that_fails_ends_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
