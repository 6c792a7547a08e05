// Evolution finds the top of a hill that it only ever measures, whatever the threads.
#include "train/evolve.h"
#include "tests/runner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { N = 12, FIXED = 3, STEPS = 120 };

// Highest where the moving numbers are 0.5; a run adds a level of its own, which mirrors cancel.
static Err hill(void *self, const float *w, uint32_t run, Arena *a, double *worth) {
    (void)self;
    (void)a;
    *worth = 100 * sin(run);
    for (uint32_t i = 0; i < N; i++) *worth -= pow((double)w[i] - 0.5, 2);
    return ERR_OK;
}

static void climb(uint32_t threads, Arena *a, FloatVec w) {
    EvolveOptions o = {.pairs = 8, .runs = 3, .sigma = 0.05f, .step = 0.1f, .keep = 0.8f};
    Runs         *runs;
    FloatVec      way = float_vec_new(a, N - FIXED);
    double        mean;
    assert_int_equal(runs_create(&runs, threads, a), ERR_OK);
    for (uint32_t i = 0; i < STEPS; i++)
        assert_int_equal(evolve_step(&o, runs, rng_fork((Rng){7}, i), hill, NULL, w,
                                     float_vec_part(w, FIXED, N - FIXED), way, a, &mean),
                         ERR_OK);
    runs_destroy(runs);
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

static Err fails(void *self, const float *w, uint32_t run, Arena *a, double *worth) {
    (void)self, (void)w, (void)a, (void)worth;
    return run == 1 ? err_set(ERR_LIMIT, "no more") : ERR_OK;
}

static void test_a_run_that_fails_ends_it(void **state) {
    (void)state;
    EvolveOptions o = {.pairs = 2, .runs = 2, .sigma = 0.05f, .step = 0.1f};
    Arena         a;
    Runs         *runs;
    double        mean;
    assert_int_equal(arena_init(&a, (size_t)1 << 28), ERR_OK);
    FloatVec w = float_vec_new(&a, N), way = float_vec_new(&a, N);
    assert_int_equal(runs_create(&runs, 1, &a), ERR_OK);
    assert_int_equal(evolve_step(&o, runs, (Rng){1}, fails, NULL, w, w, way, &a, &mean), ERR_LIMIT);
    assert_true(float_vec_norm(w) == 0);
    runs_destroy(runs);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_climbs),
        cmocka_unit_test(test_a_run_that_fails_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
