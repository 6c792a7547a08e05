#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/text.h"
#include "tests/runner.h"

static void check_case(const char *from, const char *upper, const char *lower) {
    char out[64] = "";
    text_upper(text_of(from), out);
    assert_string_equal(out, upper);
    memset(out, 0, sizeof out);
    text_lower(text_of(from), out);
    assert_string_equal(out, lower);
}

static void letters_change_case(void **state) {
    (void)state;
    check_case("Monday 7", "MONDAY 7", "monday 7");
    check_case("Zürich Łódź", "ZÜRICH ŁÓDŹ", "zürich łódź");
    check_case("Ωmega Ёж", "ΩMEGA ЁЖ", "ωmega ёж");
    check_case("÷×ß中", "÷×ß中", "÷×ß中");
    check_case("a\xff\xc3", "A\xff\xc3", "a\xff\xc3");  // broken UTF-8 stays as it is
}

static void check_split(const char *s, const char *separator, int64_t cuts, const char *joined) {
    Str     parts[16];
    char    out[64] = "";
    int64_t n = text_split(text_of(s), text_of(separator), cuts, parts);
    assert_true(n == text_split(text_of(s), text_of(separator), cuts, NULL));
    for (int64_t i = 0; i < n; i++) {
        strncat(out, parts[i].at, parts[i].len);
        strcat(out, "|");
    }
    assert_string_equal(out, joined);
}

static void strings_split(void **state) {
    (void)state;
    check_split("a,b,,c", ",", -1, "a|b||c|");
    check_split("a,b,,c", ",", 1, "a|b,,c|");
    check_split("", ",", -1, "|");
    check_split(",", ",", -1, "||");
    check_split("aXXXb", "XX", -1, "a|Xb|");
    check_split("  hello  big world ", "", -1, "hello|big|world|");
    check_split("  hello  big world ", "", 1, "hello|big world|");
    check_split("  \t", "", -1, "");
    check_split("a b", "", 0, "a b|");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_change_case),
        cmocka_unit_test(strings_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
