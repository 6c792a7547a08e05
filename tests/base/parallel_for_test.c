// Every job runs once and starts with an empty scratch arena; the first failure is returned and
// stops the rest.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/parallel_for.h"
#include "tests/runner.h"

enum { N = 500 };

typedef struct Jobs {
    _Atomic uint32_t ran[N], started;
    uint32_t         fails;  // job that fails; N: none
} Jobs;

static Err job(void *self, uint32_t i, Arena *scratch) {
    Jobs *j = self;
    atomic_fetch_add(&j->ran[i], 1);
    atomic_fetch_add(&j->started, 1);
    if (scratch->used != 0) return err_set(ERR_INVALID, "scratch of job %u is not empty", i);
    memset(arena_new(scratch, char, 1000), 1, 1000);
    return i == j->fails ? err_set(ERR_LIMIT, "job %u failed", i) : ERR_OK;
}

static void test_every_job_once(void **state) {
    (void)state;
    for (uint32_t threads = 0; threads <= 5; threads++) {
        Jobs        j = {.fails = N};
        ParallelFor all = {.run = job, .self = &j, .n = N};
        assert_int_equal(parallel_for(&all, threads), ERR_OK);
        for (uint32_t i = 0; i < N; i++) assert_int_equal(j.ran[i], 1);
    }
    assert_int_equal(parallel_for(&(ParallelFor){.run = job}, 4), ERR_OK);
}

static void test_first_failure_stops(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        Jobs        j = {.fails = 20};
        ParallelFor all = {.run = job, .self = &j, .n = N};
        assert_int_equal(parallel_for(&all, threads), ERR_LIMIT);
        assert_string_equal(err_why(), "job 20 failed");
        if (threads == 1) assert_int_equal(j.started, 21);
    }
}

static void test_threads(void **state) {
    (void)state;
    assert_int_equal(parallel_threads(3), 3);
    assert_true(parallel_threads(0) >= 1);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_job_once),
        cmocka_unit_test(test_first_failure_stops),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
