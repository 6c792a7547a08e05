// Quantities: a table of what Kubernetes reads, and exact rational arithmetic as a slow twin.
#include "kube/quantity.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/runner.h"

static void table(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t     units, milli;
    } rows[] = {
        {"0", 0, 0},
        {"100m", 1, 100},
        {"1.5", 2, 1500},
        {"2Gi", INT64_C(2) << 30, (INT64_C(2) << 30) * 1000},
        {"1e3", 1000, 1000000},
        {"1E3", 1000, 1000000},
        {"1e-3", 1, 1},
        {"12E", INT64_MAX, INT64_MAX},
        {"7E", INT64_C(7000000000000000000), INT64_MAX},
        {"0.5Mi", 524288, 524288000},
        {"+3k", 3000, 3000000},
        {"-1.5", -2, -1500},
        {"1.", 1, 1000},
        {".5", 1, 500},
        {"1n", 1, 1},
        {"999u", 1, 1},
        {"0.0000000000000000000000000001", 1, 1},
        {"0.1Ki", 103, 102400},
        {"1e-999999999999999999999", 1, 1},
        {"1e999999999999999999999", INT64_MAX, INT64_MAX},
        {"0e999999999999999999999", 0, 0},
        {"9223372036854775807", INT64_MAX, INT64_MAX},
        {"-9223372036854775808", -INT64_MAX, -INT64_MAX},
        {"8Ei", INT64_MAX, INT64_MAX},
        {"000000000000000000000000000000000000001", 1, 1000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t units = 0, milli = 0;
        assert_int_equal(quantity_units(rows[i].text, &units), ERR_OK);
        assert_int_equal(quantity_milli(rows[i].text, &milli), ERR_OK);
        if (units != rows[i].units || milli != rows[i].milli)
            fail_msg("%s: %" PRId64 " %" PRId64, rows[i].text, units, milli);
    }
}

static void refused(void **state) {
    (void)state;
    static const char *const rows[] = {"",     "-",   ".",   "m",     "1.1.M", "1+1", "0.1mi",
                                       "1i",   "1e",  "1e-", "1e1m",  " 1",    "1 ",  "0x10",
                                       "1MiB", "nan", "--1", "1e+-1", "aoeu",  "1KI", "Ki"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t out = 7;
        if (quantity_units(rows[i], &out) == ERR_OK) fail_msg("'%s' was accepted", rows[i]);
        assert_true(out == 7 && strstr(err_why(), "quantity") != NULL);
    }
    char long_one[300];
    memset(long_one, '1', sizeof long_one - 1);
    long_one[299] = '\0';
    int64_t out = 0;
    assert_int_equal(quantity_units(long_one, &out), ERR_LIMIT);
}

__extension__ typedef __int128 Wide;

// digits / 10^places * 10^ten * 2^two * 10^scale, rounded up.
static int64_t slow(int64_t digits, int places, int ten, int two, int scale) {
    Wide top = digits, bottom = 1;
    for (int i = 0; i < ten + scale; i++) top *= 10;
    for (int i = 0; i > ten + scale; i--) bottom *= 10;
    for (int i = 0; i < places; i++) bottom *= 10;
    for (int i = 0; i < two; i++) top *= 2;
    return (int64_t)((top + bottom - 1) / bottom);
}

static void twins(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int         ten, two;
    } suffixes[] = {{"", 0, 0},    {"m", -3, 0},  {"u", -6, 0},  {"k", 3, 0},  {"M", 6, 0},
                    {"Ki", 0, 10}, {"Mi", 0, 20}, {"Gi", 0, 30}, {"e2", 2, 0}, {"e-4", -4, 0}};
    Rng r = {41};
    for (int i = 0; i < 20000; i++) {
        char    text[64];
        int64_t digits = (int64_t)rng_below(&r, 1000000), units = 0, milli = 0, power = 1;
        int     places = (int)rng_below(&r, 6);
        size_t  s = rng_below(&r, sizeof suffixes / sizeof *suffixes);
        for (int k = 0; k < places; k++) power *= 10;
        (void)snprintf(text, sizeof text, "%" PRId64 "%s%0*" PRId64 "%s", digits / power,
                       places > 0 ? "." : "", places, places > 0 ? digits % power : 0,
                       suffixes[s].text);
        if (places == 0)
            (void)snprintf(text, sizeof text, "%" PRId64 "%s", digits, suffixes[s].text);
        assert_int_equal(quantity_units(text, &units), ERR_OK);
        assert_int_equal(quantity_milli(text, &milli), ERR_OK);
        if (units != slow(digits, places, suffixes[s].ten, suffixes[s].two, 0) ||
            milli != slow(digits, places, suffixes[s].ten, suffixes[s].two, 3))
            fail_msg("%s: %" PRId64 " %" PRId64, text, units, milli);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(table), cmocka_unit_test(refused),
                                       cmocka_unit_test(twins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
