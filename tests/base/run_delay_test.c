// The delay of a thread, read from a file in the format of schedstat.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/run_delay.h"
#include "tests/runner.h"

static void put(int fd, const char *text) {
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void delay_counts_as_late_as_it_can(void **state) {
    (void)state;
    RunDelay d = {.fd = memfd_create("schedstat", 0)};
    put(d.fd, "5000 700 3\n");
    assert_int_equal(run_delay_read(&d, 1000), 700);
    put(d.fd, "6000 900 4\n");
    assert_int_equal(run_delay_until(&d, 1950, 2000), 850);  // 50 of the 200 are after 1950
    assert_int_equal(d.at, 2000);
    assert_int_equal(d.total, 900);
    put(d.fd, "6000 1000 5\n");
    assert_int_equal(run_delay_until(&d, 2500, 3000), 900);
    put(d.fd, "");
    assert_int_equal(run_delay_read(&d, 4000), 1000);
    run_delay_close(&d);
}

static void without_the_file_there_is_no_delay(void **state) {
    (void)state;
    RunDelay d = {.fd = -1}, unopened = {0};
    assert_int_equal(run_delay_read(&d, 1000), 0);
    assert_int_equal(run_delay_until(&d, 1000, 2000), 0);
    run_delay_close(&d);
    run_delay_close(&unopened);
    assert_int_equal(fcntl(0, F_GETFD) == -1, false);  // did not close descriptor 0
}

static void the_own_thread_has_one(void **state) {
    (void)state;
    RunDelay d;
    run_delay_open(&d, 1);
    TimeNs before = d.total;
    assert_true(before >= 0 && run_delay_read(&d, 2) >= before);
    run_delay_close(&d);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delay_counts_as_late_as_it_can),
        cmocka_unit_test(without_the_file_there_is_no_delay),
        cmocka_unit_test(the_own_thread_has_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
