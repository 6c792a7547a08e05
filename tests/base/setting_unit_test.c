#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/settings.h"
#include "tests/runner.h"

#define UNIT_SETTINGS(X)                                                                           \
    X(wait_ms, int, 1, 0, 100000, "whole milliseconds")                                            \
    X(wait_s, double, 1, 0, 1e6, "seconds")                                                        \
    X(lag_us, double, 1, 0, 1e12, "microseconds")                                                  \
    X(room_mb, int64, 1, 0, 1 << 20, "MiB")                                                        \
    X(page_kb, int, 1, 0, 1 << 20, "KiB")                                                          \
    X(cores, int, 1, 0, 64, "no unit")                                                             \
    X(name_ms, string, "", 0, 9, "text")

typedef struct UnitSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    UNIT_SETTINGS(X)
#undef X
} UnitSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(UnitSettings, __VA_ARGS__)
    UNIT_SETTINGS(X)
#undef X
};
enum { WAIT_MS, WAIT_S, LAG_US, ROOM_MB, PAGE_KB, CORES, NAME_MS };

static void whole(int row, const char *text, int64_t expected) {
    SettingValue v = {0};
    if (setting_parse(&rows[row], text, &v) != ERR_OK) fail_msg("%s: %s", text, err_why());
    assert_int_equal(v.i, expected);
}

static void real(int row, const char *text, double expected) {
    SettingValue v = {0};
    if (setting_parse(&rows[row], text, &v) != ERR_OK) fail_msg("%s: %s", text, err_why());
    if (v.d > expected * (1 + 1e-12) || v.d < expected * (1 - 1e-12)) fail_msg("%s: %g", text, v.d);
}

static void test_taken(void **state) {
    (void)state;
    whole(WAIT_MS, "20", 20);
    whole(WAIT_MS, "20ms", 20);
    whole(WAIT_MS, "20 ms", 20);
    whole(WAIT_MS, "1.5s", 1500);
    whole(WAIT_MS, "1min", 60000);
    whole(WAIT_MS, "3000us", 3);
    whole(WAIT_MS, "0s", 0);
    real(WAIT_S, "20ms", 0.02);
    real(WAIT_S, "2h", 7200);
    real(LAG_US, "1.25ms", 1250);
    real(LAG_US, "5ns", 0.005);
    whole(ROOM_MB, "64MiB", 64);
    whole(ROOM_MB, "2GiB", 2048);
    whole(ROOM_MB, "1048576B", 1);
    whole(PAGE_KB, "1MiB", 1024);
    whole(PAGE_KB, "1024kB", 1000);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        int         row;
        const char *text;
    } bad[] = {
        {WAIT_MS, "20us"},    {WAIT_MS, "20MiB"}, {WAIT_MS, "20msx"},
        {WAIT_MS, "ms"},      {WAIT_MS, "-20ms"}, {WAIT_MS, ".ms"},
        {WAIT_MS, "1..5s"},   {WAIT_MS, "1e3ms"}, {WAIT_MS, "200s"},
        {WAIT_MS, "20 "},     {WAIT_MS, " 20ms"}, {WAIT_MS, "20MS"},
        {ROOM_MB, "64MB"},    {ROOM_MB, "1m"},    {ROOM_MB, "99999999999999999999999GiB"},
        {CORES, "4s"},        {CORES, "4B"},      {WAIT_S, "1000000h"},
        {PAGE_KB, "0x10KiB"}, {LAG_US, ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        SettingValue v = {.i = 77};
        if (setting_parse(&rows[bad[i].row], bad[i].text, &v) != ERR_CONFIG)
            fail_msg("accepted '%s' for %s", bad[i].text, rows[bad[i].row].key);
        assert_int_equal(v.i, 77);
    }
}

static void test_example(void **state) {
    (void)state;
    assert_string_equal(setting_unit_example(&rows[WAIT_MS]), "20ms");
    assert_string_equal(setting_unit_example(&rows[PAGE_KB]), "64MiB");
    assert_null(setting_unit_example(&rows[CORES]));
    assert_null(setting_unit_example(&rows[NAME_MS]));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
