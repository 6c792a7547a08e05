// Step times measured once are reused at the next start.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <unistd.h>

#include "node/prepared_model.h"
#include "tests/runner.h"

static char path[] = "/tmp/cotenant_laps_XXXXXX";
static Host host;

static void check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

static int open_host(void **state) {
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    check(host_open(&host, 2, path));
    return 0;
}

static int close_host(void **state) {
    (void)state;
    host_close(&host);
    return unlink(path);
}

static double whole(const PrepareOptions *o) {
    PreparedModel s;
    check(prepared_model_load(&s, "zoo:lstm_kws", &host, o));
    assert_true(s.measured);
    double ns = s.solo_ns[0] + 3 * s.solo_ns[1];
    prepared_model_finish(&s);
    return ns;
}

static void change(const char *sql) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

// Two measurements differ in some nanosecond; two reads of the store do not.
static void times_are_kept(void **state) {
    (void)state;
    PrepareOptions o = {.background = true, .interpret = true, .runs = 4};
    double         other = whole(&o);
    assert_true(whole(&o) != other);  // nothing was remembered
    o.remember = true;
    double first = whole(&o);
    assert_true(whole(&o) == first);
    change("UPDATE profile SET record = substr(record, 1, length(record) - 1)");
    assert_true(whole(&o) != first);  // a damaged record is measured anew
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_are_kept)};
    return cmocka_run_group_tests(tests, open_host, close_host);
}
