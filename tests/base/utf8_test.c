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

#include "base/utf8.h"
#include "tests/runner.h"

// Round trip of every code point; invalid points become U+FFFD.
static void test_every_point(void **state) {
    (void)state;
    for (uint32_t p = 0; p < 0x110400; p++) {
        char        b[5] = {0};
        size_t      n = utf8_put(p, b);
        const char *at = b;
        bool        none = p > 0x10FFFF || (p >= 0xD800 && p < 0xE000);
        assert_int_equal(utf8_next(&at, b + n), none ? 0xFFFD : p);
        assert_ptr_equal(at, b + n);
        for (size_t cut = 1; cut < n; cut++) {
            at = b;
            assert_int_equal(utf8_next(&at, b + cut), UTF8_BAD);
            assert_ptr_equal(at, b + 1);
        }
    }
}

// A sequence is valid exactly if encoding the decoded point gives the same bytes.
static void test_every_pair_and_triple_of_bytes(void **state) {
    (void)state;
    for (uint32_t lead = 0xC0; lead < 0x100; lead++)
        for (uint32_t rest = 0; rest < 0x10000; rest++) {
            char        b[4] = {(char)lead, (char)(rest >> 8), (char)rest, (char)0x80}, back[4];
            const char *at = b;
            uint32_t    p = utf8_next(&at, b + 4);
            if (p == UTF8_BAD) {
                assert_ptr_equal(at, b + 1);
                continue;
            }
            size_t n = utf8_put(p, back);
            assert_int_equal(n, (size_t)(at - b));
            assert_memory_equal(b, back, n);
        }
}

static void test_ok_and_width(void **state) {
    (void)state;
    assert_true(utf8_ok("", 0) && utf8_ok("caf\xC3\xA9", 5));
    assert_false(utf8_ok("caf\xC3\xA9", 4) || utf8_ok("\x80", 1) || utf8_ok("\xF5\x80\x80\x80", 4));
    assert_int_equal(utf8_width('a'), 1);
    assert_int_equal(utf8_width(0x301), 0);
    assert_int_equal(utf8_width(0x4E2D), 2);
    assert_int_equal(utf8_width(0x1F600), 2);
    assert_int_equal(utf8_width(0x20AC), 1);
    assert_true(utf8_control('\n') && utf8_control(0x9B) && utf8_control(0x202E));
    assert_false(utf8_control(' ') || utf8_control(0xE9));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_point),
        cmocka_unit_test(test_every_pair_and_triple_of_bytes),
        cmocka_unit_test(test_ok_and_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
