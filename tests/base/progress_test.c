#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "base/term.h"
#include "tests/runner.h"

static TimeNs now;
static char  *text;
static size_t len;
static FILE  *out;

static TimeNs fake(void *state) {
    (void)state;
    return now;
}

static Progress begin(int64_t total) {
    Progress p;
    now = 1000;
    out = open_memstream(&text, &len);
    progress_begin(&p, out, (Clock){fake, NULL}, "tuning", total);
    return p;
}

static int count(const char *needle) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, needle)) != NULL; at++) n++;
    return n;
}

static void test_lines_per_tenth(void **state) {
    (void)state;
    Progress p = begin(1000);
    assert_false(p.live);
    for (int i = 0; i < 1000; i++) {
        now += 10000000;
        progress_step(&p, 1);
    }
    progress_end(&p);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(count("\n"), 10);
    assert_memory_equal(text, "tuning  10%  100/1000  eta 9s\n", 30);
    assert_string_equal(strstr(text, "tuning 100%"), "tuning 100%  1000/1000  took 10s\n");
    assert_null(strchr(text, '\r'));
    assert_null(strchr(text, '\033'));
    free(text);
}

static void test_big_steps(void **state) {
    (void)state;
    Progress p = begin(3);
    progress_step(&p, 1);
    now += INT64_C(7500) * 1000000000;
    progress_step(&p, 1);
    progress_step(&p, 1);
    progress_step(&p, 1);  // one more than promised
    progress_end(&p);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "tuning  33%  1/3  eta 0s\n"
                              "tuning  66%  2/3  eta 1h02m\n"
                              "tuning 100%  3/3  took 2h05m\n");
    free(text);
}

static void test_nothing_to_do_and_stopping_early(void **state) {
    (void)state;
    Progress p = begin(0);
    progress_end(&p);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "tuning 100%  0/0  took 0s\n");
    free(text);
    p = begin(100);
    now += INT64_C(90) * 1000000000;
    progress_step(&p, 5);
    progress_end(&p);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "tuning   5%  5/100  eta 28m30s\n");
    free(text);
}

static void test_live_line_is_drawn_ten_times_a_second(void **state) {
    (void)state;
    Progress p = begin(1000);
    p.live = true;
    for (int i = 0; i < 1000; i++) {
        now += 2000000;  // two seconds in all
        progress_step(&p, 1);
    }
    progress_end(&p);
    assert_int_equal(fclose(out), 0);
    assert_in_range(count("\r"), 20, 23);
    assert_int_equal(count("\n"), 1);
    assert_null(strstr(text, "\033[32m"));
    assert_non_null(
        strstr(text, "tuning [##############################] 100%  1000/1000  took 2s\n"));
    free(text);
}

static void test_colour_is_closed(void **state) {
    (void)state;
    Progress p = begin(10);
    p.live = p.colour = true;
    progress_step(&p, 5);
    progress_end(&p);
    assert_int_equal(fclose(out), 0);
    assert_true(count("\033[32m") > 0);
    assert_int_equal(count("\033[32m"), count("\033[0m"));
    assert_non_null(strstr(text, "[\033[32m###############...............\033[0m]"));
    free(text);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_per_tenth),
        cmocka_unit_test(test_big_steps),
        cmocka_unit_test(test_nothing_to_do_and_stopping_early),
        cmocka_unit_test(test_live_line_is_drawn_ten_times_a_second),
        cmocka_unit_test(test_colour_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
