#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "tests/runner.h"

static Err fails(void) { return err_set(ERR_PARSE, "line %d is odd", 3); }

static Err passes_on(void) {
    TRY(fails());
    return ERR_OK;
}

static void test_reason_and_place(void **state) {
    (void)state;
    Err e = passes_on();
    assert_int_equal(e, ERR_PARSE);
    assert_string_equal(err_why(), "line 3 is odd");
    assert_int_equal(err_add(e, "file %s", "a.yaml"), ERR_PARSE);
    assert_string_equal(err_why(), "file a.yaml: line 3 is odd");
    assert_string_equal(err_text(ERR_PARSE), "malformed input");
}

static void test_long_reasons_are_cut(void **state) {
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)err_set(ERR_IO, "%s", text);
    size_t n = strlen(err_why());
    assert_true(n > 100 && n < sizeof text);
    (void)err_add(ERR_IO, "place");
    assert_memory_equal(err_why(), "place: xxx", 10);
    (void)err_set(ERR_IO, "short");
    (void)err_add(ERR_IO, "%s", text);  // no room for the place: the message is kept
    assert_string_equal(err_why(), "short");
}

static void *other_thread(void *arg) {
    (void)err_set(ERR_IO, "another thread");
    return arg;
}

static void test_each_thread_has_its_own(void **state) {
    (void)state;
    pthread_t t;
    (void)err_set(ERR_IO, "mine");
    assert_int_equal(pthread_create(&t, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_string_equal(err_why(), "mine");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reason_and_place),
        cmocka_unit_test(test_long_reasons_are_cut),
        cmocka_unit_test(test_each_thread_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
