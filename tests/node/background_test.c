#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "node/live/background.h"
#include "tests/runner.h"

typedef struct Burn {
    TimeNs cpu_ns;  // to be spent
    TimeNs wall_ns;
    int class;
} Burn;

static TimeNs own_time(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (TimeNs)t.tv_sec * 1000000000 + t.tv_nsec;
}

static Err burn(void *ctx) {
    Burn  *b = ctx;
    TimeNs begin = clock_now(clock_monotonic());
    b->class = sched_getscheduler(0);
    while (own_time() < b->cpu_ns) continue;
    b->wall_ns = clock_now(clock_monotonic()) - begin;
    return ERR_OK;
}

// It may get less than its share, never more.
static void keeps_to_its_share(void **state) {
    (void)state;
    Background *b = NULL;
    Burn        w = {.cpu_ns = 20000000};
    assert_int_equal(background_start(&b, 0.25, burn, &w), ERR_OK);
    assert_int_equal(background_join(b), ERR_OK);
    assert_true(w.wall_ns > 2 * w.cpu_ns);
    assert_int_equal(w.class, SCHED_IDLE);
}

static Err rain(void *ctx) {
    (void)ctx;
    return err_set(ERR_LIMIT, "it rained");
}

static void errors_come_back(void **state) {
    (void)state;
    Background *b = NULL;
    assert_int_equal(background_start(&b, 1, rain, NULL), ERR_OK);
    while (!background_done(b)) (void)sched_yield();
    assert_int_equal(background_join(b), ERR_LIMIT);
    assert_string_equal(err_why(), "it rained");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_to_its_share),
        cmocka_unit_test(errors_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
