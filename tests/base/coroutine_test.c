#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/coroutine.h"
#include "tests/runner.h"

typedef struct Count {
    Coroutine *c;
    int        n, most;
    uint32_t   work;
    uint64_t   sum;
} Count;

// Keeps values in locals over pauses.
static void count(void *self) {
    Count   *t = self;
    uint64_t sum = 0;
    for (int i = 0; i < t->most; i++) {
        char text[64];
        memset(text, i, sizeof text);
        sum += (unsigned char)text[i % 64];
        t->n = i + 1;
        coroutine_point(t->work);
    }
    t->sum = sum;
}

static uint64_t expected(int most) {
    uint64_t sum = 0;
    for (int i = 0; i < most; i++) sum += (unsigned char)i;
    return sum;
}

static void test_pauses_at_points(void **state) {
    (void)state;
    Count t = {.most = 500, .work = 100000};
    int   slices = 0;
    assert_int_equal(coroutine_create(&t.c), ERR_OK);
    for (int round = 0; round < 3; round++) {
        coroutine_begin(t.c, count, &t);
        for (slices = 1; !coroutine_resume(t.c, 0); slices++) assert_int_equal(t.n, slices);
        assert_int_equal(slices, t.most + 1);
        assert_int_equal(t.sum, expected(t.most));
    }
    coroutine_destroy(t.c);
}

static void test_runs_through_in_a_long_slice(void **state) {
    (void)state;
    Count t = {.most = 500, .work = 100000};
    assert_int_equal(coroutine_create(&t.c), ERR_OK);
    coroutine_begin(t.c, count, &t);
    assert_true(coroutine_resume(t.c, INT64_C(1000000000000)));
    assert_int_equal(t.sum, expected(t.most));
    coroutine_destroy(t.c);
}

static void test_points_outside_do_nothing(void **state) {
    (void)state;
    Count t = {.most = 1000, .work = UINT32_MAX};
    count(&t);
    assert_int_equal(t.sum, expected(t.most));
}

static void test_begins_anew_after_a_pause(void **state) {
    (void)state;
    Count t = {.most = 500, .work = 100000}, other = {.most = 3, .work = 100000};
    assert_int_equal(coroutine_create(&t.c), ERR_OK);
    coroutine_begin(t.c, count, &t);
    assert_false(coroutine_resume(t.c, 0));
    coroutine_begin(t.c, count, &other);
    while (!coroutine_resume(t.c, 0)) continue;
    assert_int_equal(t.n, 1);
    assert_int_equal(other.n, 3);
    coroutine_begin(t.c, count, &t);
    assert_false(coroutine_resume(t.c, 0));
    coroutine_destroy(t.c);
    coroutine_destroy(NULL);
}

static void *resume_once(void *self) {
    Count *t = self;
    return coroutine_resume(t->c, 0) ? self : NULL;
}

static void test_moves_between_threads(void **state) {
    (void)state;
    Count t = {.most = 40, .work = 100000};
    void *done = NULL;
    assert_int_equal(coroutine_create(&t.c), ERR_OK);
    coroutine_begin(t.c, count, &t);
    for (int i = 0; done == NULL; i++) {
        pthread_t thread;
        assert_true(i <= t.most);
        assert_int_equal(pthread_create(&thread, NULL, resume_once, &t), 0);
        assert_int_equal(pthread_join(thread, &done), 0);
        if (done == NULL) done = resume_once(&t);
    }
    assert_int_equal(t.sum, expected(t.most));
    coroutine_destroy(t.c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_at_points),
        cmocka_unit_test(test_runs_through_in_a_long_slice),
        cmocka_unit_test(test_points_outside_do_nothing),
        cmocka_unit_test(test_begins_anew_after_a_pause),
        cmocka_unit_test(test_moves_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
