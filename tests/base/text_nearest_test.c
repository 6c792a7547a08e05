#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "tests/runner.h"

static void test_distance(void **state) {
    (void)state;
    assert_int_equal(text_distance("", ""), 0);
    assert_int_equal(text_distance("", "abc"), 3);
    assert_int_equal(text_distance("abc", ""), 3);
    assert_int_equal(text_distance("kitten", "sitting"), 3);
    assert_int_equal(text_distance("load", "laod"), 1);
    assert_int_equal(text_distance("accels", "acels"), 1);
    char long_word[300];
    memset(long_word, 'a', sizeof long_word - 1);
    long_word[sizeof long_word - 1] = '\0';
    assert_int_equal(text_distance(long_word, ""), 64);
}

static void test_nearest(void **state) {
    (void)state;
    const char *const known[] = {"list", "write", "show", "check"};
    assert_string_equal(text_nearest("lsit", known, 4), "list");
    assert_string_equal(text_nearest("shw", known, 4), "show");
    assert_string_equal(text_nearest("chekc", known, 4), "check");
    assert_null(text_nearest("banana", known, 4));
    assert_null(text_nearest("", known, 4));
    assert_null(text_nearest("list", NULL, 0));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
